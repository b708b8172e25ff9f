#!/usr/bin/env bash
# The runs behind docs/depth.md: accuracy against depth, start and routing; small λ; residual stacks; Algorithm 1's step.
# Short runs (12,800 training images, 5 epochs, one-cycle), so that all of them are a matter of minutes on a GPU.
#
#   scripts/depth_runs.sh STORE RECORDS_FOLDER "fashion-mnist cifar10" "depth wide residual lambda step" [--jobs N ...]
set -euo pipefail
store=$1 records=$2 datasets=$3 parts=$4
shift 4

stack() { # stack PRIMARY HIDDEN DEPTH: the capsules of a net with so many capsule layers
  local layers=$1
  for ((layer = 2; layer < $3; layer++)); do layers+="x$2"; done
  echo "${layers}x10"
}
stacks() { # stacks PRIMARY HIDDEN DEPTH...
  local primary=$1 hidden=$2 all=()
  shift 2
  for depth in "$@"; do all+=("$(stack "$primary" "$hidden" "$depth")"); done
  (IFS=,; echo "${all[*]}")
}
sweep() { # sweep NAME SEEDS OPTIONS... -- GRID...
  local name=$1 seeds=$2
  shift 2
  capsroute sweep --store "$store/$name" --records "$records/$name.jsonl" --seeds "$seeds" "${options[@]}" --grid \
    limit=12800 epochs=5 schedule=one-cycle keep=result "$@"
}

options=("$@")
for data in $datasets; do
  for part in $parts; do
    case $part in
      depth)
        sweep "depth-small-$data" 3 dataset="$data" preset=small init=normal,length \
          capsules="$(stacks 144 32 2 3 4 6 8 12 16)" routing=dynamic / routing=adaptive-lambda lam=1,2,3,learned ;;
      wide)
        sweep "depth-paper-$data" 1 dataset="$data" preset=paper-2 init=normal,length \
          capsules="$(stacks 1152 64 2 3 4 6 8 12 16)" routing=dynamic / routing=adaptive-lambda lam=1 ;;
      residual)
        sweep "residual-small-$data" 3 dataset="$data" preset=small init=length residual=true \
          capsules="$(stacks 144 32 4 6 8 12 16)" routing=adaptive-lambda lam=1 ;;
      lambda)
        sweep "lambda-small-$data" 3 dataset="$data" preset=small init=normal,length \
          capsules="$(stacks 144 32 2 3 4)" routing=adaptive-lambda lam=0.1,0.001,0.0001,0.00001 ;;
      step) # 144 lower capsules, so that 0.00694 is 1/I
        sweep "step-small-$data" 3 dataset="$data" preset=small routing=adaptive iterations=1,2,3 step=1,0.00694 ;;
      *) echo "no part $part; known: depth wide residual lambda step" >&2; exit 2 ;;
    esac
  done
done
