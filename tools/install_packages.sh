#!/usr/bin/env bash
# Installs the Debian packages that Octet is built from, if any is missing. Usage: install_packages.sh build|check
set -euo pipefail

build=(g++ cmake ninja-build ccache pkg-config libfmt-dev nlohmann-json3-dev libsimdjson-dev libboost-program-options-dev
       libpcre2-dev libutf8proc-dev libedit-dev opencl-c-headers python3 python3-pip)
check=(libgtest-dev libgmock-dev libbenchmark-dev libsimde-dev clang libclang-rt-14-dev clang-format clang-tidy git binutils
       zsh fish groff-base ocl-icd-libopencl1 pocl-opencl-icd oclgrind intel-opencl-icd libigc-tools)

packages=("${build[@]}")
[ "${1:-build}" = check ] && packages+=("${check[@]}")

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

sudo=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "install_packages: needs root or sudo to install: ${missing[*]}" >&2; exit 4; }
  sudo=(sudo)
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
