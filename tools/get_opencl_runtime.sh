#!/usr/bin/env bash
# Fetches Intel's OpenCL runtime for CPUs, which has real subgroups, and prints the folder that OCL_ICD_VENDORS takes. A test
# tool under its own licence (Intel End User License Agreement for Developer Tools): kept in the user's cache, never part of
# Octet. Usage: get_opencl_runtime.sh
set -euo pipefail

version=2026.2.0
home=${XDG_CACHE_HOME:-$HOME/.cache}/octet/intel-opencl-$version
if [ ! -f "$home/vendors/intel.icd" ]; then
  rm -rf "$home"
  mkdir -p "$home/vendors"
  echo "fetching Intel's OpenCL runtime $version for CPUs (about 280 MB)" >&2
  # The second package holds libraries that the first one needs and does not name.
  /usr/bin/python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-warn-script-location \
    --ignore-installed --prefix "$home" "intel-opencl-rt==$version" "intel-cmplr-lib-rt==$version" >&2 ||
    { echo "get_opencl_runtime: pip cannot fetch intel-opencl-rt $version" >&2; rm -rf "$home"; exit 4; }
  library=$(find "$home" -name libintelocl.so | head -n 1)
  [ -n "$library" ] || { echo "get_opencl_runtime: the package holds no libintelocl.so" >&2; rm -rf "$home"; exit 4; }
  echo "$library" >"$home/vendors/intel.icd"
fi
echo "$home/vendors"
