# shellcheck shell=bash
# What a hypervisor does before an instance's own system starts. The pod's environment brings it in BOOT.
set -eu
# Control groups of version 1: a container sees those of its node. The system inside needs a root of its own.
if [ ! -f /sys/fs/cgroup/cgroup.controllers ]; then
  if [ -z "${INSIDE:-}" ]; then
    # shellcheck disable=SC2016 # The inner shell expands it.
    INSIDE=yes exec unshare --cgroup -- /bin/bash -c 'eval "$BOOT"'
  fi
  awk '$3 == "cgroup" { print $2, $4 }' /proc/mounts | while read -r path options; do
    controllers=$(echo "$options" | tr , '\n' | grep -vxE 'rw|ro|nosuid|nodev|noexec|relatime' | paste -sd, -)
    umount "$path"
    mount -t cgroup -o "nosuid,nodev,noexec,$controllers" cgroup "$path"
  done
fi
# User data is run once at each start, as root, when the system is up.
cat >/etc/systemd/system/user-data.service <<'UNIT'
[Unit]
Description=User data of the instance
After=containerd.service
[Service]
Type=oneshot
RemainAfterExit=yes
# What cannot be pulled is brought along.
ExecStartPre=/bin/sh -c 'test ! -f /images/all.tar || ctr -n k8s.io images import /images/all.tar'
ExecStart=/bin/bash /user-data/userData
[Install]
WantedBy=multi-user.target
UNIT
mkdir -p /etc/systemd/system/multi-user.target.wants
ln -sf ../user-data.service /etc/systemd/system/multi-user.target.wants/user-data.service
unset BOOT INSIDE
exec /usr/local/bin/entrypoint /sbin/init
