'''Switching the hardware prefetchers by likwid-features, and back whatever happens.

What was found out about likwid-features 5.2.2 from its source (``likwid-features.lua``): it exits with 1 after listing the states; a state that it
cannot read is listed as ``off``; on processors that are not Intel's it says so in one line and exits with 0; a switch that fails is a line ``Failed
...``, and its exit code is 0.  So nothing here trusts its exit code: the states are listed again after each switch.
'''

import re
import shlex

#: Where a node keeps what must be switched on again: what a killed job leaves behind, its next run fixes, or the site's epilog.
KEPT = '/run/plumbline'

_CANNOT = 'plumbline: the prefetchers cannot be switched: '

_SCRIPT = '''\
# Usage: sh prefetchers.sh COMMAND...  Runs it with the hardware prefetchers as they are and with them off, in turn.
# Written by plumbline.likwid.features.  Its output is the records of all runs, with the option "prefetchers" added,
# each run a group of its own.
cpus={cpus}
rounds={rounds}
child=

cannot() {{ echo "{cannot}$1"; exit 0; }}

# The prefetchers of a listing, and their states: on, off, or mixed where the CPUs are not set alike.
states() {{  # LISTING
    printf '%s\\n' "$1" | awk '$1 ~ /_PREFETCHER$/ && NF > 1 {{
        state = $2; for (i = 3; i <= NF; i++) if ($i != state) state = "mixed"; print $1, state }}'
}}
list() {{ likwid-features -c "$cpus" -l 2>&1; }}
which_are() {{ states "$2" | awk -v state="$1" '$2 == state {{ printf "%s%s", comma, $1; comma = "," }}'; }}

restore() {{
    [ -e "$flag" ] || return 0
    said=$(likwid-features -c "$cpus" -e "$on" 2>&1)
    if [ "$(which_are on "$(list)")" != "$on" ]; then
        echo "plumbline: the prefetchers are still off ($said): run likwid-features -c $cpus -e $on" >&2
        return 1
    fi
    rm -f "$flag"
}}

# A signal ends the measurement, not the switching back.
finish() {{
    status=$?
    trap '' HUP INT TERM
    [ -z "$child" ] || kill -- "-$child" 2>/dev/null
    restore || status=1
    exit "$status"
}}

command -v likwid-features >/dev/null 2>&1 || cannot 'likwid-features is not on this node'

# $kept/prefetchers is there while they may be off: which, on which CPUs, by whom.
kept={kept}
mkdir -p "$kept" 2>/dev/null
[ -O "$kept" ] || {{ kept=/var/tmp/plumbline-$(id -u); mkdir -m 700 "$kept" 2>/dev/null; }}
[ -O "$kept" ] && [ ! -L "$kept" ] || cannot "$kept belongs to somebody else"
flag=$kept/prefetchers
if [ -f "$flag" ]; then
    read -r their_cpus their_on who <"$flag"
    case $their_cpus$their_on$who in *[!0-9A-Z_,]*) cannot "$flag holds something else; remove it" ;; esac
    ! kill -0 "$who" 2>/dev/null || cannot "process $who has them off for its own measurement"
    own=$cpus cpus=$their_cpus on=$their_on
    restore || exit 1       # a run that was killed with all its processes has left them off
    cpus=$own
fi

listed=$(list)
[ -n "$(states "$listed")" ] ||
    cannot "$(printf '%s\\n' "$listed" | sed -e '/^ *$/d' -e 's/^ERROR - [[][^]]*] *//' | head -n 1)"
mixed=$(which_are mixed "$listed")
[ -z "$mixed" ] || cannot "$mixed: not alike on all CPUs"
on=$(which_are on "$listed")
[ -n "$on" ] || cannot 'none of them is on'

trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
# Should this shell be killed outright, somebody else must switch them back.
setsid sh -c 'while kill -0 "$1" 2>/dev/null; do sleep 1; done; [ ! -e "$2" ] || likwid-features -c "$3" -e "$4"' \\
    guardian "$$" "$flag" "$cpus" "$on" </dev/null >/dev/null 2>&1 &

measure() {{  # STATE GROUP COMMAND...
    state=$1 number=$2
    shift 2
    setsid "$@" >prefetchers.out &
    child=$!
    wait "$child"
    status=$? child=
    [ "$status" = 0 ] || exit "$status"
    sed -e "s/\\"options\\": {{/&\\"prefetchers\\": \\"$state\\", /" -e "s/\\"group\\": 0,/\\"group\\": $number,/" \\
        -e "$([ "$number" = 0 ] || echo '/^{{"record": "machine"/d')" prefetchers.out
}}

group=0
while [ "$group" -lt $((2 * rounds)) ]; do
    measure on "$group" "$@"
    echo "$cpus $on $$" >"$flag"
    said=$(likwid-features -c "$cpus" -d "$on" 2>&1)
    stuck=$(which_are on "$(list)")
    if [ -n "$stuck" ]; then
        why=$(printf '%s\\n' "$said" | head -n 1)
        restore && cannot "$stuck stay on: $why"
        exit 1
    fi
    measure off $((group + 1)) "$@"
    restore || exit 1
    group=$((group + 2))
done
'''


def script(cpus, rounds, kept=KEPT):
    '''A POSIX shell script that runs its arguments, a native program of one size, with the prefetchers on and off.

    Only those that were on are switched, on these CPUs, and they are on again when it ends: also when it fails, or is ended by HUP, INT or TERM; if
    it is killed outright, a second later; if all its processes are, as a scheduler's cgroup does, when it runs again on that node.

    :arg rounds: how often it runs both, in turn.
    :arg kept: folder of the node for what that needs; one in ``/var/tmp`` for whoever cannot make it.
    '''
    return _SCRIPT.format(cpus=','.join(map(str, cpus)), rounds=rounds, cannot=_CANNOT, kept=shlex.quote(str(kept)))


def unavailable_reason(text):
    '''Why the prefetchers could not be switched, from the script's output; :obj:`None` if they were.'''
    found = re.search(f'^{re.escape(_CANNOT)}(.*)$', text, re.MULTILINE)
    return found and (found[1].strip() or 'likwid-features says nothing')
