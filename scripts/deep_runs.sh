#!/usr/bin/env bash
# The best deep nets: six capsule layers on the paper's stem and on the residual one, with and without shortcuts.
# `held-*` are judged on 5,000 held-out training images and decide between the variants; `test-*` are the same on all
# training images, judged on the test split.
#
#   scripts/deep_runs.sh STORE RECORDS_FOLDER [further options of `capsroute sweep`]
set -euo pipefail
store=$1 records=$2
shift 2
deep=1152x64x64x64x64x10
common=(schedule=one-cycle weight_decay=0.03 ema=0.998 init=length lam=1 keep=result capsules=$deep residual=true,false)
for split in held test; do
  holdout=$([ $split = held ] && echo 5000 || echo 0)
  capsroute sweep --store "$store/$split-deep" --records "$records/$split-deep.jsonl" "$@" --grid \
    dataset=cifar10 epochs=15 shift=2 holdout="$holdout" "${common[@]}" \
    / dataset=fashion-mnist shift=2 shift_end=0 \
    / stem=resnet epochs=30 flip=false,true
done
