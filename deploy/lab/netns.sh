#!/bin/bash
# Network namespaces as hosts, to run across hosts on one machine. Needs root and iproute2.
#
#   deploy/lab/netns.sh up N          make hosts hr-host0 .. hr-host(N-1), joined by a switch
#   deploy/lab/netns.sh run COMMAND   run a command on hr-host0; mpirun and hyperrun reach the others from there
#   deploy/lab/netns.sh hostfile      the path of a host file for mpirun's --hostfile, SLOTS (default 8) each
#   deploy/lab/netns.sh down          remove them, and end the processes in them
#
# Each host has its own name and network but shares files and /dev/shm with the others; Open MPI tells
# hosts apart by their names, so ranks of different hosts exchange messages. The machine's own network is
# not touched. `up` exits with 77 where namespaces cannot be made.
set -u

state=${HYPERRUN_NETNS_STATE:-/tmp/hyperrun-netns}
subnet=10.78.0
switch=hr-switch

cannot() {
  echo "network namespaces cannot be made: $*" >&2
  exit 77
}

hosts() { ip netns list | awk '/^hr-host[0-9]+/ {print $1}' | sort -V; }

down() {
  for name in $(hosts) "$switch"; do
    ip netns list | grep -qw "$name" || continue
    ip netns pids "$name" | xargs -r kill -9
    ip netns del "$name"
    rm -rf "/etc/netns/$name"
  done
  rm -rf "$state"
  rmdir /etc/netns 2>/dev/null || true
}

make_switch() {
  ip netns add "$switch" && ip -n "$switch" link add br0 type bridge && ip -n "$switch" link set br0 up
}

# make_host INDEX: a namespace with its interface eth0 on the switch, and a /etc/hosts of its own.
make_host() {
  local name=hr-host$1
  ip netns add "$name" && ip -n "$name" link set lo up &&
    ip link add eth0 netns "$name" type veth peer name "port$1" netns "$switch" &&
    ip -n "$switch" link set "port$1" master br0 up &&
    ip -n "$name" addr add "$subnet.$((10 + $1))/24" dev eth0 &&
    ip -n "$name" link set eth0 up &&
    mkdir -p "/etc/netns/$name" && ln -sf "$state/hosts" "/etc/netns/$name/hosts"
}

# The command with which mpirun starts its daemons, in place of ssh. Like a login, it starts with an empty environment.
write_rsh() {
  cat >"$state/rsh" <<'RSH'
#!/bin/bash
while [[ ${1:-} == -* ]]; do shift; done
host=$1
shift
exec env -i PATH="$PATH" HOME="$HOME" ip netns exec "$host" unshare --uts /bin/bash -c "hostname $host; $*"
RSH
  chmod +x "$state/rsh"
}

up() {
  local count=$1
  [ "$(id -u)" -eq 0 ] || cannot "not root"
  command -v ip >/dev/null || cannot "no ip (Debian package iproute2)"
  down
  mkdir -p "$state"
  make_switch || { down; cannot "see above"; }
  echo "127.0.0.1 localhost" >"$state/hosts"
  for ((i = 0; i < count; i++)); do
    echo "$subnet.$((10 + i)) hr-host$i" >>"$state/hosts"
    echo "hr-host$i slots=${SLOTS:-8}" >>"$state/hostfile"
    make_host "$i" || { down; cannot "see above"; }
  done
  write_rsh
}

run() {
  export OMPI_MCA_plm_rsh_agent=$state/rsh OMPI_MCA_plm_rsh_no_tree_spawn=1
  export OMPI_MCA_oob_tcp_if_include=eth0 OMPI_MCA_btl_tcp_if_include=eth0
  # shellcheck disable=SC2016 # "$@" is the inner shell's
  exec ip netns exec hr-host0 unshare --uts /bin/bash -c 'hostname hr-host0; exec "$@"' run "$@"
}

case ${1:-} in
  up) up "${2:?how many hosts}" ;;
  run) shift && run "$@" ;;
  hostfile) echo "$state/hostfile" ;;
  down) down ;;
  *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
