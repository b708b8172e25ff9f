#!/usr/bin/env bash
# The search for the profile `short`: the paper's two-layer net on Fashion-MNIST, judged on 10,000 held-out training
# images. Change by change on top of a first guess, then some changes together. No test image is read.
#
#   scripts/recipe_runs.sh STORE RECORDS.jsonl [further options of `capsroute sweep`]
set -euo pipefail
store=$1 records=$2
shift 2
capsroute sweep --store "$store" --records "$records" "$@" --grid \
  dataset=fashion-mnist preset=paper-2 lam=2 holdout=10000 keep=result \
  epochs=16 schedule=one-cycle lr=0.001 shift=1 \
  / shift=0,2 \
  / shift=2 shift_end=0 \
  / lr=0.0005,0.002,0.004 \
  / rise=0.1 \
  / weight_decay=0.03,0.1,0.3 \
  / drop_capsules=0.2,0.5 \
  / ema=0.998 \
  / reconstruct=true \
  / init=length \
  / lam=1 \
  / batch_size=64,256 \
  / lr=0.002 drop_capsules=0.5 weight_decay=0.1 \
  / lr=0.002 drop_capsules=0.5 weight_decay=0.1 ema=0.998 shift=2 shift_end=0 \
  / lr=0.002 drop_capsules=0.5 weight_decay=0.1 ema=0.998 shift=2 shift_end=0 init=length \
  / lr=0.002 drop_capsules=0.5 weight_decay=0.1 ema=0.998 shift=2 shift_end=0 epochs=32
