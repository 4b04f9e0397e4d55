#!/usr/bin/env bash
# Checks a CUDA device and measures it: the list of behaviours that every device must show, on the machine's own
# driver, then what its pages, copies and sharing cost. Builds only what that needs. Takes less than 5 minutes.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

usage() {
  cat <<'TEXT'
Usage: bench/gpu_check.sh [--build] [--json]

  --build   only build build/gpu_check, also where there is no GPU. That folder can be carried to a machine with a
            GPU but without compiler, headers or network: there it is used as it is.
  --json    the rows as JSON objects, as bench/run prints them

Exit codes: 0 all is well; 1 a behaviour or a measurement failed; 2 it cannot be built, and why; 77 no GPU, and why.
TEXT
}

build=build/gpu_check
only_build=false
json=()
for argument in "$@"; do
  case "$argument" in
    --build) only_build=true ;;
    --json) json=(--json) ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done
say() { echo "gpu_check: $*" >&2; }

# The driver itself is asked later; this spares a machine without any device the build.
if ! $only_build && ! compgen -G '/dev/nvidia[0-9]*' > /dev/null && [ ! -e /dev/dxg ]; then
  say "skipped: no GPU: there is no /dev/nvidia0"
  exit 77
fi

# What cannot be found of: "what it is" | "the Debian package that has it".
missing() {
  command -v cmake > /dev/null || echo "cmake|cmake"
  command -v make > /dev/null || command -v ninja > /dev/null || echo "make or ninja|make"
  if ! command -v "${CXX:-g++}" > /dev/null; then
    echo "a C++20 compiler|g++"
    return
  fi
  has() { printf '#include <%s>\n' "$1" | "${CXX:-g++}" -std=c++20 "${@:2}" -fsyntax-only -x c++ - 2> /dev/null; }
  has cuda.h -I"${CUDA_HOME:-/usr/local/cuda}/include" || echo "cuda.h of the CUDA toolkit|nvidia-cuda-dev"
  has doctest/doctest.h || echo "doctest|doctest-dev"
  has boost/system/result.hpp || echo "Boost's headers, 1.79 or newer|libboost1.81-dev"
}

can_build() {
  local lacks packages
  lacks=$(missing)
  if [ -n "$lacks" ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    mapfile -t packages < <(grep -v 'cuda.h' <<< "$lacks" | cut -d'|' -f2)
    if [ "${#packages[@]}" -gt 0 ]; then
      say "installing ${packages[*]}"
      timeout 60 apt-get install -y -qq --no-install-recommends "${packages[@]}" > /dev/null 2>&1
      lacks=$(missing)
    fi
  fi
  [ -z "$lacks" ] && return 0
  say "missing here: $(cut -d'|' -f1 <<< "$lacks" | paste -sd';' | sed 's/;/; /g')"
  return 1
}

targets=(unit_gpu_cuda unit_gpu_cuda_device bench_gpu)
if can_build; then
  mkdir -p "$build"
  log=$build/build.log
  # A folder that was carried here knows the paths of another machine.
  if [ -f "$build/CMakeCache.txt" ] && ! grep -qF "SOURCE_DIR:STATIC=$PWD/bench/gpu_check" "$build/CMakeCache.txt"; then
    rm -rf "$build/CMakeCache.txt" "$build/CMakeFiles"
  fi
  if ! { cmake -S bench/gpu_check -B "$build" -DCMAKE_BUILD_TYPE=Release &&
         cmake --build "$build" --parallel --target "${targets[@]}"; } > "$log" 2>&1; then
    tail -40 "$log" >&2
    say "it does not build here; the whole log: $log"
    exit 2
  fi
else
  for target in "${targets[@]}"; do
    if [ ! -x "$build/$target" ]; then
      say "nor is there a $build that was built elsewhere: install what is missing, or run" \
          "bench/gpu_check.sh --build where it is and carry $build here"
      exit 2
    fi
  done
  say "using $build as it was built elsewhere"
fi
if $only_build; then
  say "built: $build/{$(IFS=,; echo "${targets[*]}")}"
  exit 0
fi

command -v nvidia-smi > /dev/null && nvidia-smi --query-gpu=name,driver_version,memory.total,memory.free --format=csv,noheader
for suite in unit_gpu_cuda unit_gpu_cuda_device; do
  echo "$suite"
  timeout 60 "$build/$suite"
  code=$?
  [ $code -eq 77 ] && exit 77
  if [ $code -ne 0 ]; then
    say "$suite failed with exit code $code$([ $code -eq 124 ] && echo ': it took longer than 60 s')"
    exit 1
  fi
done
timeout 170 "$build/bench_gpu" ${json[@]+"${json[@]}"}
code=$?
case $code in
  0|77) exit $code ;;
  124) say "the measurement took longer than 170 s"; exit 1 ;;
  *) say "the measurement failed with exit code $code"; exit 1 ;;
esac
