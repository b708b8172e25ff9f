#!/usr/bin/env bash
# How far the recipe of the profile `short` carries the paper's two-layer net on Fashion-MNIST, by number of epochs.
#
#   scripts/accuracy_runs.sh STORE RECORDS.jsonl [further options of `capsroute sweep`]
set -euo pipefail
store=$1 records=$2
shift 2
capsroute sweep --store "$store" --records "$records" "$@" --grid \
  dataset=fashion-mnist preset=paper-2 lam=2 schedule=one-cycle shift=2 shift_end=0 weight_decay=0.03 ema=0.998 \
  keep=result epochs=15,30,60
