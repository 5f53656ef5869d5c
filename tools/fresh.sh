#!/bin/sh
# `make fresh`: does a clone of HEAD work on a machine that has nothing? Debian 12 by debootstrap, Python, make and git.
#
# Knows: how to make such a system under build/, what of this machine it needs to reach packages (pip's settings,
# certificates, proxies, resolver), and how long each verb took there. Refuses to know what the verbs do.
# Rule: nothing of this machine is in it but that: no compiler, no Java, no libpcap, no caches, no locale. Mounts live in
# a mount namespace of their own: the kernel removes them and every process inside however this ends, kill -9 included.
#
# make fresh [VERBS="setup check"]     (demo and test unless told otherwise)
# Exit codes: 0 every verb succeeded, 1 one did not, 3 it cannot be done on this machine (one line says why).
set -eu

SUITE=bookworm
PACKAGES=python3,python3-venv,make,git,ca-certificates
CANNOT=3
here=$(cd "$(dirname "$0")/.." && pwd)
work=$here/build/fresh
root=$work/root

cannot() {
  echo "fresh: cannot be done here: $1" >&2
  exit "$CANNOT"
}

said_s=$(date +%s)
say() {
  printf 'fresh: %4d s  %s\n' "$(($(date +%s) - said_s))" "$1"
}

need() {
  test "$(uname -s)" = Linux || cannot "a chroot with namespaces needs Linux"
  test "$(id -u)" = 0 || cannot "debootstrap and chroot need root: sudo make fresh"
  for tool in debootstrap:debootstrap unshare:util-linux flock:util-linux chroot:coreutils git:git; do
    command -v "${tool%:*}" >/dev/null || cannot "no ${tool%:*}: apt-get install ${tool#*:}"
  done
  unshare --mount --pid --fork true 2>/dev/null || cannot "namespaces are not allowed here (a container without privileges?)"
}

# Where this machine takes Debian's packages from, if it is the same suite; debootstrap's own choice otherwise.
mirror() {
  command -v apt-get >/dev/null || return 0
  # shellcheck disable=SC2016  # apt replaces these names
  apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk -v suite="$SUITE" '$1 == suite && $2 == "main" && $3 ~ /debian\/?$/ { print $3; exit }'
}

build() {
  say "making a minimal Debian ($SUITE) in ${root#"$here"/}"
  rm -rf --one-file-system "$root"
  mkdir -p "$work/packages" "$root"
  command -v apt-config >/dev/null && eval "$(apt-config shell http_proxy Acquire::http::Proxy)" && export http_proxy
  # shellcheck disable=SC2046  # no mirror is no argument
  debootstrap --variant=minbase --include="$PACKAGES" --cache-dir="$work/packages" "$SUITE" "$root" $(mirror) \
    >"$work/debootstrap.log" 2>&1 ||
    cannot "debootstrap: $(tail -n 1 "$work/debootstrap.log") (all of it: ${work#"$here"/}/debootstrap.log)"
  say "$(du -sm --one-file-system "$root" | cut -f 1) MB; Python $(chroot "$root" python3 -c 'import platform; print(platform.python_version())')"
}

# A file of this machine at the same place inside.
hand_in() {
  test ! -f "$1" || install -D -m 0644 "$1" "$root${2:-$1}"
}

connect() {
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/xdg/pip/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    hand_in "$file"
  done
  hand_in "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf" /root/.config/pip/pip.conf
  hand_in "$HOME/.pip/pip.conf" /root/.pip/pip.conf
  certificates=$(sed -n 's/^ *cert *= *//p' "$root/etc/pip.conf" "$root/root/.config/pip/pip.conf" 2>/dev/null || true)
  for file in $certificates "${PIP_CONFIG_FILE:-}" "${PIP_CERT:-}" "${SSL_CERT_FILE:-}" "${REQUESTS_CA_BUNDLE:-}"; do
    hand_in "$file"
  done
  test ! -d "${PIP_FIND_LINKS:-}" || { mkdir -p "$root$PIP_FIND_LINKS" && cp -r "$PIP_FIND_LINKS/." "$root$PIP_FIND_LINKS"; }
  # what pip and TLS are told by the environment, and nothing else of it
  env | grep -E '^(PIP_|SSL_CERT_FILE=|REQUESTS_CA_BUNDLE=|(http|https|no|all)_proxy=|(HTTP|HTTPS|NO|ALL)_PROXY=)' |
    sed "s/'/'\\\\''/g; s/=\(.*\)/='\1'/; s/^/export /" >"$root/root/environment" || true
  chmod 0600 "$root/root/environment"
}

clone() {
  rm -rf "$root/src.git"
  git init --quiet --bare "$root/src.git"
  git -C "$here" push --quiet "$root/src.git" HEAD:refs/heads/main
  git -C "$root/src.git" symbolic-ref HEAD refs/heads/main
  say "a bare clone of $(git -C "$here" rev-parse --short HEAD)$(test -z "$(git -C "$here" status --porcelain)" || echo '; what is not committed is not in it')"
}

# Inside the namespaces, as the first process there: what it mounts and starts ends with it.
inside() {
  mount --make-rprivate /
  trap 'umount --recursive "$root/proc" "$root/sys" "$root/dev" 2>/dev/null || true' EXIT
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys"
  mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
  for name in null zero full random urandom tty; do
    touch "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
  done
  mkdir "$root/dev/shm" "$root/dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
  for number in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${number%%:*}" "$root/dev/${number#*:}"; done
  within 'rm -rf /clone && git clone --quiet /src.git /clone'
  for verb in "$@"; do
    began_s=$(date +%s)
    say "make $verb"
    ended=0
    within "cd /clone && make $verb" || ended=$?
    say "make $verb: exit $ended after $(($(date +%s) - began_s)) s; .venv $(du -sm "$root/clone/.venv" 2>/dev/null | cut -f 1) MB"
    test "$ended" = 0 || exit 1
  done
}

within() {
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
    chroot "$root" sh -c ". /root/environment && $1"
}

if [ "${1:-}" = --inside ]; then
  shift
  inside "$@"
  exit 0
fi
test $# -gt 0 || set -- demo test
for verb in "$@"; do
  grep -q "^$verb:" "$here/Makefile" || cannot "make has no verb $verb"
done
need
mkdir -p "$work"
exec 9>"$work/lock"
flock --nonblock 9 || cannot "another one is running"
build
connect
clone
unshare --mount --pid --fork --kill-child sh "$0" --inside "$@"
