#include "skein/prepare/read/bytes/foreign_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "skein/base/files/lfs_pointer.h"
#include "skein/base/text/shell_words.h"
#include "skein/objects/url.h"
#include "skein/prepare/read/bytes/compression.h"
#include "skein/prepare/read/bytes/tar.h"

namespace skein {
namespace {

// A null byte ends a string literal's view otherwise.
template <size_t N>
constexpr std::string_view bytes(const char (&literal)[N]) {
  return {literal, N - 1};
}

// What is often handed over in place of text, or lies beside it.
constexpr ForeignKind kBinaryKinds[] = {
    {"\x89PNG\r\n\x1a\n", "a PNG image", ""},
    {"\xff\xd8\xff", "a JPEG image", ""},
    {"GIF8", "a GIF image", ""},
    {"%PDF-", "a PDF document", "pdftotext {}"},
    {"%!PS-Adobe", "a PostScript document", "ps2ascii {}"},
    {"{\\rtf", "an RTF document", "pandoc -t plain -o TEXT.txt {}"},
    {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a document of Microsoft Office",
     "soffice --convert-to txt {}"},
    {"PK\x03\x04", "a zip archive (which documents of Office, EPUB and OpenDocument are, too)",
     "unzip -d {1} {0}"},
    {"PK\x05\x06", "a zip archive without members", ""},
    {"7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x {}"},
    {"Rar!\x1a\x07", "a RAR archive", "unrar x {}"},
    {"\x1f\x9d", "data that compress compressed", "uncompress {}"},
    {"\x7f"
     "ELF",
     "a program or a library (ELF)", ""},
    {"SQLite format 3", "an SQLite database",
     "sqlite3 -json {} 'SELECT text FROM documents' > documents.json"},
    {bytes("MMIDIDX\0\0"), "an index of tokens that Megatron wrote", ""},
    {"\x93NUMPY", "an array of NumPy, such as the tokens of another program", ""},
    {"\x89HDF\r\n\x1a\n", "an HDF5 file", "h5dump {}"},
    {"Obj\x01", "an Avro file", "avro-tools tojson {} > documents.jsonl"},
    {"GGUF", "weights of a model (GGUF)", ""},
    {"\x80\x02}", "a pickle of Python, which runs code when it is loaded", ""},
    {"\x80\x03}", "a pickle of Python, which runs code when it is loaded", ""},
    {"\x80\x04\x95", "a pickle of Python, which runs code when it is loaded", ""},
    {"\x80\x05\x95", "a pickle of Python, which runs code when it is loaded", ""},
    {bytes("\x00\x05\x16\x07"), "what macOS keeps of a file beside it", ""},
};

// Of these that begin so in text as well, more has to speak for it than a few letters.
bool may_begin_text(const ForeignKind& kind) {
  const auto is_plain = [](char byte) { return byte >= ' ' && byte <= '~'; };
  return kind.beginning.size() < 5 &&
         std::all_of(kind.beginning.begin(), kind.beginning.end(), is_plain);
}

struct EncodingKind {
  std::string_view beginning;
  const char* name;
};
constexpr EncodingKind kEncodings[] = {
    {bytes("\xff\xfe\0\0"), "UTF-32"},
    {bytes("\0\0\xfe\xff"), "UTF-32"},
    {"\xff\xfe", "UTF-16"},
    {"\xfe\xff", "UTF-16"},
};

// Text of Latin letters in UTF-16 without its mark: every second byte is zero.
const char* encoding_of(std::string_view head) {
  for (const auto& [beginning, name] : kEncodings) {
    if (head.starts_with(beginning)) return name;
  }
  constexpr size_t kPairs = 8;
  if (head.size() < 2 * kPairs) return nullptr;
  for (const size_t first : {size_t{0}, size_t{1}}) {
    bool is_so = true;
    for (size_t i = 0; i < 2 * kPairs; ++i) is_so &= (head[i] == 0) == (i % 2 != first);
    if (is_so) return first == 0 ? "UTF-16LE" : "UTF-16BE";
  }
  return nullptr;
}

// Words of XML's first element, behind its declaration.
bool begins_element(std::string_view head, std::string_view element) {
  const size_t at = head.find(element);
  if (at == head.npos) return false;
  const size_t first = head.find_first_not_of(" \t\r\n", head.starts_with("\xef\xbb\xbf") ? 3 : 0);
  return first == at ||
         (head.substr(first).starts_with("<?xml") && head.find('<', first + 1) == at);
}

// What copies without links make of those in a snapshot: "../../blobs/5e3f".
bool was_link(std::string_view head) {
  constexpr std::string_view kUp = "../", kBlobs = "blobs/";
  if (!head.starts_with(kUp) || head.size() > 200) return false;
  while (head.starts_with(kUp)) head.remove_prefix(kUp.size());
  if (!head.starts_with(kBlobs)) return false;
  head.remove_prefix(kBlobs.size());
  return !head.empty() && head.find_first_not_of("0123456789abcdef") == head.npos;
}

constexpr const char* kTokens =
    "numbers, such as tokens that another program made, and not their text: expected the texts "
    "that they were made of";

}  // namespace

const ForeignKind* binary_kind(std::string_view head) {
  const auto* found =
      std::find_if(std::begin(kBinaryKinds), std::end(kBinaryKinds),
                   [&](const ForeignKind& kind) { return head.starts_with(kind.beginning); });
  return found == std::end(kBinaryKinds) ? nullptr : found;
}

std::string command_on(const char* command, const fs::path& file) {
  const bool is_object = is_object_url(file);
  const fs::path here = is_object ? file.filename() : file;
  const fs::path stem = here.has_extension() ? here.stem() : fs::path(here.filename()) += ".texts";
  return (is_object ? fmt::format("aws s3 cp {} . && ", shell_word(file.string())) : "") +
         fmt::format(fmt::runtime(command), shell_word(here.string()), shell_word(stem.string()));
}

std::string advice_of(const ForeignKind& kind, const fs::path& file) {
  return *kind.command == '\0' ? "" : fmt::format("`{}` helps", command_on(kind.command, file));
}

void refuse_foreign(std::string_view head, const fs::path& path) {
  const std::string name = path.string();
  const auto refuse = [&](const std::string& what) {
    throw ForeignFile(fmt::format("{}: {}", name, what));
  };
  if (is_lfs_pointer(head)) refuse(kLfsAdvice);
  if (was_link(head)) {
    refuse(
        fmt::format("was a link in a cache of the Hugging Face Hub, to {}, and is a text that "
                    "holds its target: copy the cache with its links, as `cp -a` does",
                    head));
  }
  if (const ForeignKind* kind = binary_kind(head); kind != nullptr && !may_begin_text(*kind)) {
    const std::string advice = advice_of(*kind, path);
    refuse(
        fmt::format("{}, not text: expected text, or JSON, CSV, Parquet or Arrow that holds some{}",
                    kind->what, advice.empty() ? "" : "; " + advice));
  }
  if (const char* encoding = encoding_of(head)) {
    refuse(fmt::format(
        "{}: expected UTF-8 text; `{}` makes it", encoding,
        command_on(fmt::format("iconv -f {} -t UTF-8 {{}} > NEW", encoding).c_str(), path)));
  }
  if (begins_element(head, "<mediawiki")) {
    refuse(fmt::format(
        "a dump of a wiki's pages, with their markup and history: expected their texts; `{}` "
        "makes a folder of them, TEXTS",
        command_on("pipx run wikiextractor --json -o TEXTS {}", path)));
  }
  const std::string inside = name_inside(path);
  if (inside.ends_with(".ipynb") && head.find('{') < 8) {
    refuse(
        fmt::format("a notebook, whose outputs and images are no text: `{}` makes its source "
                    "(--as-text takes it as it is)",
                    command_on("jupyter nbconvert --to script {}", path)));
  }
  for (const char* ending : {".cls", ".cls2", ".index", ".inx", ".count"}) {
    const bool is_number = head.find_first_not_of("0123456789-. \r\n") == head.npos;
    if (inside.ends_with(ending) && is_number) refuse("a number of a WebDataset's sample, no text");
  }
  const bool is_named_binary = inside.ends_with(".bin") || inside.ends_with(".npy") ||
                               inside.ends_with(".idx") || inside.ends_with(".ds");
  if (is_named_binary && head.find('\0') != head.npos) refuse(kTokens);
}

std::string_view left_by_program(const std::string& name) {
  const std::string lower = lower_case(name);
  for (const char* ending : {".partial", ".incomplete", ".crdownload", ".aria2"}) {
    if (lower.ends_with(ending)) return "what an interrupted program left";
  }
  for (const char* system : {"__macosx", "thumbs.db", "desktop.ini", "$recycle.bin", "@eadir",
                             "system volume information", "lost+found"}) {
    if (lower == system) return "what an operating system keeps there";
  }
  if (lower.ends_with(":zone.identifier")) return "what an operating system keeps there";
  if (lower == "_temporary") return "what an interrupted program left";
  if (name.size() > 1 && name.ends_with('~')) return "an editor's copy of a file";
  return "";
}

}  // namespace skein
