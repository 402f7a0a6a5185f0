#!/usr/bin/env bash
# The archive of scripts/package.sh in an empty root folder: nothing of this machine is there but the
# archive and glibc, which it is allowed to need (copied from this machine, loader included). There are
# no /dev, no /tmp, no shell, and of /proc only the link by which the loader knows where the program
# lies. A small model is trained, exported and asked.
#
#   tests/scripts/package_test.sh          exit code 77: skipped, a chroot is not possible here
set -euo pipefail
cd "$(dirname "$0")/../.."
as_root=()
if [ "$(id -u)" != 0 ]; then
  as_root=(unshare --map-root-user)
  if ! "${as_root[@]}" true 2>/dev/null; then
    echo "package_test: SKIPPED: chroot needs root, or user namespaces" >&2
    exit 77
  fi
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

scripts/package.sh --no-build "$dir"
mkdir -p "$dir/root/job" "$dir/root/proc/self"
ln -s /moved/bin/skein "$dir/root/proc/self/exe"
tar -C "$dir" -xzf "$dir"/skein-*.tar.gz
mv "$dir"/skein-*/ "$dir/root/moved"  # another name, another place
program=$dir/root/moved/bin/skein

# Of this machine: glibc alone, where it is here. Everything else must come out of the archive.
ldd "$program" | awk '$2 == "=>" {print $3} $1 ~ /^\// {print $1}' | while read -r library; do
  case $(basename "$library") in
    ld-linux-*.so.* | libc.so.* | libm.so.* | libmvec.so.* | libpthread.so.* | libdl.so.* | librt.so.* | libresolv.so.* | libutil.so.*)
      mkdir -p "$dir/root$(dirname "$library")"
      cp -L "$library" "$dir/root$library" ;;
    *)
      [[ $(realpath "$library") == "$(realpath "$dir/root/moved")"/* ]] ||
        { echo "package_test: $library is not in the archive" >&2; exit 1; } ;;
  esac
done
skein() { "${as_root[@]}" chroot "$dir/root" /moved/bin/skein "$@"; }

skein version
cat docs/*.md > "$dir/root/job/text.txt"
cat > "$dir/root/job/run.toml" <<'TOML'
[run]
dir = "/job/run"
steps = 3
[model]
hidden_size = 64
intermediate_size = 176
num_hidden_layers = 2
num_attention_heads = 4
[data]
train = "/job/corpus.arrow"
tokenizer = "/job/tokenizer"
sequence_length = 64
[batch]
global_sequences = 4
[optimizer]
warmup_steps = 1
decay_steps = 10
TOML
skein data ingest --out /job/corpus.arrow /job/text.txt
skein data tokenizer --vocab-size 512 --out /job/tokenizer /job/corpus.arrow
skein plan /job/run.toml --set model.vocab_size=512 --hardware /moved/share/skein/configs/hardware/h100-8x.toml > /dev/null
skein plan /moved/share/skein/configs/demo.toml --hardware /moved/share/skein/configs/hardware/h100-8x.toml > /dev/null
skein train /job/run.toml
skein checkpoint verify /job/run
skein checkpoint export /job/run --out /job/hf
[ -n "$(skein generate --model /job/hf --prompt 'A run' --max-tokens 5)" ]
[ -s "$dir/root/job/hf/model.safetensors" ]

# What stands beside the program.
for file in share/man/man1/skein.1 share/bash-completion/completions/skein \
  share/zsh/site-functions/_skein share/fish/vendor_completions.d/skein.fish \
  share/doc/skein/README.md share/doc/skein/docs/configuration.md share/skein/configs/demo.toml REQUIRES; do
  [ -s "$dir/root/moved/$file" ] || { echo "package_test: the archive lacks $file" >&2; exit 1; }
done
echo "package_test: good"
