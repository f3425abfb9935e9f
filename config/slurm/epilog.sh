#!/bin/bash
# Epilog of slurmd: a job that leaves a node broken drains it ("Epilog error").  As prolog.sh; slurm.conf:
#   Epilog=/usr/local/sbin/plumbline-epilog
export PATH=/usr/sbin:/usr/bin:/sbin:/bin${PATH:+:$PATH}      # slurmd gives next to none
gate=${PLUMBLINE_GATE:-/usr/local/sbin/plumbline-gate}

line=$("$gate" --seconds 10)
code=$?
# Only with its line is an exit code the gate's: an empty file ends with 0, and Python itself, which cannot read it, with 2.
[[ $code:$line == "0:plumbline gate: ok: "* ]] || timeout 2 logger -t plumbline-gate "epilog of job $SLURM_JOB_ID: exit code $code: $line"
[[ $code:$line != "2:plumbline gate: drain: "* ]]
