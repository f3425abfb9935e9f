#!/bin/bash
# HealthCheckProgram of slurmd: drains this node where the gate says so.  Copy it and the gate to a local disk of each node; slurm.conf:
#   HealthCheckProgram=/usr/local/sbin/plumbline-healthcheck
#   HealthCheckInterval=300
#   HealthCheckNodeState=ANY,CYCLE
# Slurm ignores what this exits with, and ends it after 60 s.  The gate itself asks no scheduler; scontrol is called here, once, and only
# where there is something to do.  25 s at most, a controller that is away included, or 15 s more than mounts may take to answer.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin${PATH:+:$PATH}      # slurmd gives next to none
gate=${PLUMBLINE_GATE:-/usr/local/sbin/plumbline-gate}
node=${SLURMD_NODENAME:-$(hostname -s)}
failed=

line=$("$gate" --seconds 10)
code=$?
# 0: as expected; 1: somebody should look; 3: unknown, which is no reason to take a node away from users.  Only with its line is an exit code
# the gate's: an empty file ends with 0, and Python itself, which cannot read it, with 2.
case $code:$line in
    "0:plumbline gate: ok: "*) exit 0 ;;
    "2:plumbline gate: drain: "*) ;;
    *) timeout 2 logger -t plumbline-gate "exit code $code: $line"; exit 0 ;;
esac

# A node that somebody has drained keeps his reason: where scontrol does not say the state, the next check may drain it.  What is drained here
# is resumed by a person.  It is logged last, and not for long: on a dead disk nobody may take what is logged.
case $(timeout 5 scontrol -o show node "$node" | grep -o " State=[^ ]*") in
    *DRAIN*) exit 0 ;;
    "") failed="not drained: scontrol does not tell the state of $node: " ;;
    *) timeout 5 scontrol update NodeName="$node" State=DRAIN Reason="$line" || failed="not drained: scontrol failed: " ;;
esac
timeout 2 logger -t plumbline-gate "$failed$line"
