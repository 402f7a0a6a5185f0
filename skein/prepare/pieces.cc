#include "skein/prepare/pieces.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/json_text.h"
#include "skein/base/threads/parallel_for.h"
#include "skein/prepare/make_piece.h"

namespace skein {
namespace {

// Small files are read together, up to these limits.
constexpr int64_t kSmallInputsBytes = int64_t{32} << 20;
constexpr size_t kSmallInputs = 4096;

constexpr int kPieceFormat = 4;

// Two texts that differ anywhere give two names, for all that can happen.
std::string piece_name(const std::string& key) {
  return xxh3_128_hex(std::as_bytes(std::span(key)));
}

// The name of the piece that a file belongs to; empty: none. Also of files without their name yet.
std::string piece_of(const fs::path& path) {
  const std::string name = path.filename().string();
  const size_t length = piece_name("").size();
  const bool is_piece = name.find_first_not_of("0123456789abcdef") == length && name[length] == '.';
  return is_piece ? name.substr(0, length) : "";
}

}  // namespace

Pieces::Pieces(std::vector<InputFile> inputs, PiecesOptions options)
    : inputs_(std::move(inputs)),
      options_(std::move(options)),
      folder_(options_.work_folder, options_.share),
      pieces_(plan()),
      joined_(joined_text(folder_.path()), pieces_.size()) {
  find_finished();
  if (!options_.share) remove_stale();
}

std::vector<Pieces::PieceState> Pieces::plan() const {
  const Json options = {{"format", kPieceFormat},
                        {"reading", reading_key(options_.read, options_.skip_invalid_lines)},
                        {"worker", options_.worker}};
  std::vector<PieceState> pieces;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const bool begins = pieces.empty() || pieces.back().num_inputs == kSmallInputs ||
                        pieces.back().num_input_bytes + inputs_[i].num_bytes > kSmallInputsBytes;
    if (begins) pieces.emplace_back().first_input = i;
    ++pieces.back().num_inputs;
    pieces.back().num_input_bytes += inputs_[i].num_bytes;
  }
  std::set<std::string> keys;
  for (PieceState& piece : pieces) {
    Json files = Json::array();
    for (const InputFile& file : std::span(inputs_).subspan(piece.first_input, piece.num_inputs)) {
      files.push_back({file.path.string(), file.named, file.num_bytes, file.changed_ns});
    }
    // Names of files need not be UTF-8.
    piece.key = json_text(Json{{"options", options}, {"inputs", files}});
    while (!keys.insert(piece.key).second) piece.key += " again";  // a file that was named twice
    piece.stem = folder_.path() / piece_name(piece.key);
  }
  return pieces;
}

bool Pieces::is_mine(int64_t piece) const {
  return !options_.share || piece % options_.share->count == options_.share->index;
}

int64_t Pieces::num_mine() const {
  int64_t num_mine = 0;
  for (int64_t piece = 0; piece < num_pieces(); ++piece) num_mine += is_mine(piece) ? 1 : 0;
  return num_mine;
}

void Pieces::find_finished() {
  std::vector<int64_t> mine;
  for (int64_t piece = 0; piece < num_pieces(); ++piece) {
    if (is_mine(piece)) mine.push_back(piece);
  }
  std::atomic<int64_t> num_found = 0;
  parallel_for_each(mine, num_threads_or_cores(options_.num_threads), [&](int64_t number) {
    PieceState& piece = pieces_[static_cast<size_t>(number)];
    std::optional<PieceReport> report = find_piece(piece.stem, piece.key);
    if (!report) return;
    piece.report = std::move(*report);
    piece.is_done = true;
    ++num_found;
  });
  if (num_found == 0) return;
  notes_.push_back(fmt::format("{} of {} pieces were finished before, and are taken from {}",
                               num_found.load(), mine.size(), folder_.path().string()));
}

void Pieces::remove_stale() {
  std::set<std::string> wanted;
  for (const PieceState& piece : pieces_) wanted.insert(piece.stem.filename().string());
  std::vector<fs::path> stale;
  int64_t num_finished = 0;
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    const fs::path& path = entry.path();
    const std::string piece = piece_of(path), name = path.filename().string();
    if (piece.empty() || (wanted.contains(piece) && !name.ends_with(".partial"))) continue;
    stale.push_back(path);
    num_finished += name == piece + ".json" ? 1 : 0;
  }
  std::error_code ignored;
  for (const fs::path& path : stale) fs::remove(path, ignored);
  remove_unused_texts();
  if (num_finished == 0) return;
  notes_.push_back(
      fmt::format("{} pieces in {} were made with other options, or of inputs that have changed: "
                  "they are made again",
                  num_finished, folder_.path().string()));
}

// The file of all texts, if none is in there.
void Pieces::remove_unused_texts() const {
  const bool is_used = std::any_of(pieces_.begin(), pieces_.end(), [](const PieceState& piece) {
    return piece.is_done && piece.report.joined_begin >= 0;
  });
  std::error_code ignored;
  if (!is_used) fs::remove(joined_.path(), ignored);
}

// What was finished before comes into its place among the texts. Those of pieces behind one that is
// not finished, or was made anew, have to go from where they were.
void Pieces::join_finished() {
  const auto is_in_place = [&](size_t i) {
    const PieceState& piece = pieces_[i];
    return piece.is_done && piece.report.joined_begin == joined_.turn(i);
  };
  size_t next = 0;
  for (; next < pieces_.size() && is_in_place(next); ++next) {
    joined_.put(pieces_[next].report.num_bytes);
  }
  for (; next < pieces_.size(); ++next) {
    PieceState& piece = pieces_[next];
    if (piece.is_done && piece.report.joined_begin >= 0) part_piece(piece.stem, piece.report);
    if (piece.is_done) joined_.leave(next, piece.report.num_bytes);
  }
  joined_.open();
  join_left();
}

void Pieces::join(size_t piece) {
  const PieceReport& report = pieces_[piece].report;
  report.joined_begin < 0 ? joined_.leave(piece, report.num_bytes) : joined_.put(report.num_bytes);
  join_left();
}

void Pieces::join_left() {
  while (const std::optional<size_t> left = joined_.take_left()) {
    PieceState& piece = pieces_[*left];
    join_piece(piece.stem, piece.report, joined_, *joined_.turn(*left));
    joined_.put(piece.report.num_bytes);
  }
}

const PieceReport& Pieces::report(int64_t piece) const {
  return pieces_[static_cast<size_t>(piece)].report;
}

fs::path Pieces::text_file(int64_t piece) const {
  const PieceState& wanted = pieces_[static_cast<size_t>(piece)];
  return piece_text(wanted.stem, wanted.report);
}

void Pieces::read(int64_t piece, const std::function<void(const PieceDocument&)>& visit) const {
  const PieceState& wanted = pieces_[static_cast<size_t>(piece)];
  read_piece(wanted.stem, wanted.report, visit);
}

PieceReport Pieces::total() const {
  PieceReport total;
  for (const PieceState& piece : pieces_) {
    const PieceReport& report = piece.report;
    total.num_files += report.num_files;
    total.num_skipped_files += report.num_skipped_files;
    total.num_invalid_lines += report.num_invalid_lines;
    total.num_invalid_utf8 += report.num_invalid_utf8;
    total.num_documents_read += report.num_documents_read;
    total.num_bytes_read += report.num_bytes_read;
    total.num_documents += report.num_documents;
    total.num_bytes += report.num_bytes;
    for (const std::string& warning : report.warnings) add_warning(total, warning);
    for (const auto& [what, files] : report.found) {
      add_found(total, what, files.first, files.second);
    }
    if (total.first_text.empty()) total.first_text = report.first_text;
    if (total.first_table.empty()) total.first_table = report.first_table;
    if (total.first_empty.empty()) total.first_empty = report.first_empty;
  }
  return total;
}

std::string Pieces::kept() const {
  const auto num_done = std::count_if(pieces_.begin(), pieces_.end(),
                                      [](const PieceState& piece) { return piece.is_done; });
  if (num_done == 0) return "";
  return fmt::format(
      "; {} of {} pieces are finished and stay in {}: another try continues from them", num_done,
      num_mine(), folder_.path().string());
}

void Pieces::remove_all(const fs::path& work_folder) {
  Pieces({}, {.work_folder = work_folder});  // all that is in there is stale
}

void Pieces::remove() {
  for (PieceState& piece : pieces_) piece.is_done = false;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    if (!piece_of(entry.path()).empty()) files.push_back(entry.path());
  }
  std::error_code ignored;
  for (const fs::path& file : files) fs::remove(file, ignored);
  remove_unused_texts();
}

}  // namespace skein
