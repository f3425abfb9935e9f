#!/bin/bash
# HealthCheckProgram of slurmd: drains this node where the gate says so.  Copy it and the gate to a local disk of each node; slurm.conf:
#   HealthCheckProgram=/usr/local/sbin/plumbline-healthcheck
#   HealthCheckInterval=300
#   HealthCheckNodeState=ANY,CYCLE
# Slurm ignores what this exits with, and ends it after 60 s.  The gate itself asks no scheduler; scontrol is called here, once, and only
# where there is something to do.  20 s at most, a controller that is away included.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin${PATH:+:$PATH}      # slurmd gives next to none
gate=${PLUMBLINE_GATE:-/usr/local/sbin/plumbline-gate}
node=$(hostname -s)

line=$("$gate" --seconds 10)
code=$?
# 0: as expected; 1: somebody should look; 3: unknown, which is no reason to take a node away from users.
case $code in
    0) exit 0 ;;
    2) ;;
    *) logger -t plumbline-gate "exit code $code: $line"; exit 0 ;;
esac

# A node that somebody has drained keeps his reason.  What is drained here is resumed by a person.
case $(timeout 5 scontrol -o show node "$node" | grep -o " State=[^ ]*") in
    *DRAIN*) exit 0 ;;
esac
logger -t plumbline-gate "$line"
timeout 5 scontrol update NodeName="$node" State=DRAIN Reason="$line" || logger -t plumbline-gate "not drained: scontrol failed"
