#!/usr/bin/env bash
# The container engine under the landscape.
#   hack/docker.sh up      uses the engine that answers; else installs and starts one and remembers that it did
#   hack/docker.sh down    stops the engine, only if `up` started it
#   hack/docker.sh status
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/env.sh
. hack/progress.sh

state=$REPOT_CACHE/docker
pid_file=$state/dockerd.pid

# An engine that is not there is known at once; a busy one takes its time.
engine_answers() { timeout 30 docker info >/dev/null 2>&1; }
ours() { [ -f "$pid_file" ] && kill -0 "$(cat "$pid_file")" 2>/dev/null; }

# Each kind node takes some 25 inotify instances; at the usual limit of 128 the fifth breaks in odd ways.
raise_inotify_limit() {
  local limit=/proc/sys/fs/inotify/max_user_instances
  [ "$(cat "$limit")" -ge 1024 ] && return
  if [ -w "$limit" ]; then echo 1024 >"$limit"; else
    say "fs.inotify.max_user_instances is $(cat "$limit"); if pods say \"too many open files\": sysctl -w fs.inotify.max_user_instances=1024"
  fi
}

lacks_sys_resource() { ! (((0x$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status) >> 24) & 1)); }

up() {
  if command -v docker >/dev/null && engine_answers; then
    raise_inotify_limit
    say "docker engine $(docker info -f '{{.ServerVersion}}') answers"
    return
  fi
  [ "$(id -u)" = 0 ] || fail "no docker engine answers; start one, or run this as root so that it can"
  hack/packages.sh docker.io iptables jq
  raise_inotify_limit
  mkdir -p "$state"
  # Settings of the machine's own engine (/etc/docker/daemon.json) stay as they are; these come on top.
  local options=(--pidfile "$pid_file" --log-level warn)
  if lacks_sys_resource; then
    install -m 755 hack/images/node-parts/node/runc-without-sys-resource "$state/runc-without-sys-resource"
    options+=(--add-runtime "without-sys-resource=$state/runc-without-sys-resource" --default-runtime without-sys-resource)
  fi
  say "starting dockerd (log: $state/dockerd.log)"
  setsid nohup dockerd "${options[@]}" >"$state/dockerd.log" 2>&1 </dev/null 7>&- 8>&- 9>&- &
  wait_for 120 "dockerd answers (see $state/dockerd.log)" engine_answers
  say "docker engine $(docker info -f '{{.ServerVersion}}') started"
}

down() {
  if ! ours; then say "docker engine is not ours; left as it is"; return; fi
  local pid; pid=$(cat "$pid_file")
  kill "$pid"
  wait_for 120 "dockerd ($pid) ends" eval "! kill -0 $pid"
  say "docker engine stopped"
}

status() {
  if engine_answers; then say "docker engine answers$(ours && echo ', started by hack/docker.sh')"; else say "no docker engine answers"; fi
}

case ${1:-} in
  up | down | status) "$1" ;;
  *) fail "usage: hack/docker.sh up|down|status" ;;
esac
