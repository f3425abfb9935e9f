#!/bin/bash
# Prolog and Epilog of slurmd: no job starts on a node that the gate would drain, and a job that leaves one so drains it.  Copy it and the
# gate to a local disk of each node; slurm.conf:
#   Prolog=/usr/local/sbin/plumbline-prolog
#   Epilog=/usr/local/sbin/plumbline-prolog
#   PrologFlags=Alloc
# One that ends with another exit code than 0 drains the node ("Prolog error") and requeues the job, so a warning, or a gate that knows
# nothing, must end with 0.  No Slurm command is called here: thousands of prologs that ask the controller at once would bring it down.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin${PATH:+:$PATH}      # slurmd gives next to none
gate=${PLUMBLINE_GATE:-/usr/local/sbin/plumbline-gate}

line=$("$gate" --seconds 10)
code=$?
# Only with its line is an exit code the gate's: an empty file ends with 0, and Python itself, which cannot read it, with 2.
[[ $code:$line == "0:plumbline gate: ok: "* ]] ||
    timeout 2 logger -t plumbline-gate "${SLURM_SCRIPT_CONTEXT:-prolog} of job $SLURM_JOB_ID: exit code $code: $line"
[[ $code:$line != "2:plumbline gate: drain: "* ]]
