// Several corpora read together, each for its share of the tokens.
//
// Formula  lane i of the mixture has a lane i in every corpus (lane.h). Where a segment begins, it
//          takes the next one of the corpus c with the smallest (r_c + f_c) / w_c: r_c the tokens
//          that this lane has read of it since the weights were set, w_c its weight, f_c a number
//          in [0, kSpreadTokens) drawn once for (seed, lane, c), so that lanes do not all begin
//          with the same corpus. Of n tokens of a lane, corpus c has n w_c / sum(w) to within a
//          segment and kSpreadTokens. Of equal corpora the first is taken.
//          With one corpus this is its lane itself.
// Format   docs/data_order.md
// Threads  several lanes may share a Mixture at once; a MixtureLane belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/data/lanes/lane.h"

namespace skein {

class Mixture {
 public:
  static constexpr uint32_t kSpreadTokens = 4096;

  struct Source {
    const LaneContext* context;  // must outlive the mixture
    std::string name;            // of the source; empty where there is only one
    double weight = 1;           // above 0
  };
  explicit Mixture(std::vector<Source> parts);
  Mixture(const LaneContext& context) : Mixture({{&context, "", 1}}) {}  // NOLINT: one is a mixture

  const std::vector<Source>& parts() const { return parts_; }
  const LaneContext& corpus(size_t part) const { return *parts_[part].context; }
  const LaneOptions& options() const { return corpus(0).options(); }
  std::string name() const;  // for errors

  // f_c of the formula.
  int64_t first_tokens(int64_t lane, size_t part) const;

  // How often all lanes together have read each corpus; `progress` has the sum over lanes of each.
  std::vector<double> epochs(std::span<const double> progress) const;
  // How often the text of all corpora was read, of which each has epochs[c]: weighted by bytes.
  double epoch(std::span<const double> epochs) const;

 private:
  std::vector<Source> parts_;
};

// The position of a lane of a mixture.
struct MixtureState {
  std::vector<LaneState> lanes;      // in every corpus; none: all at their beginnings
  std::vector<int64_t> read_tokens;  // r_c of the formula; empty with one corpus, which needs none

  bool operator==(const MixtureState&) const = default;
};

class MixtureLane {
 public:
  // 0 <= lane < B. Errors: kInvalid if `state` is not a possible position.
  MixtureLane(const Mixture& mixture, int64_t lane, const MixtureState& state = {});

  // As Lane's.
  std::span<const int32_t> pending() { return lanes_[current_].pending(); }
  std::span<const uint8_t> counts() const { return lanes_[current_].counts(); }
  void consume(int64_t count);
  bool inside_segment() const { return lanes_[current_].inside_segment(); }

  // Of pending(): the corpus, its document, and how many tokens of the segment come before.
  size_t corpus() const { return current_; }
  int64_t document() const { return lanes_[current_].document(); }
  int64_t first_token() const { return lanes_[current_].state().token; }

  int64_t lane() const { return lanes_[0].lane(); }
  MixtureState state() const;
  int64_t progress(size_t corpus) const { return lanes_[corpus].progress(); }

 private:
  struct Share {  // of a corpus, by the letters of the formula
    double weight;
    int64_t first_tokens;
  };
  size_t choose() const;

  std::vector<Share> shares_;
  std::vector<Lane> lanes_;
  std::vector<int64_t> read_tokens_;
  size_t current_ = 0;
};

// The states of lanes for a checkpoint, with the settings that they depend on. `rows_taken`: by all
// batches so far; nothing where each took one row of every lane.
Json lanes_to_json(const Mixture& mixture, std::span<const MixtureState> states,
                   std::optional<int64_t> rows_taken = std::nullopt);

// Reads them back. `what` names the file in errors, which are kInvalid: another corpus, seed or
// global batch than now, or impossible values. Corpora are found by their names. One that is new
// begins at its beginning; where weights or corpora changed, shares count from here on.
std::vector<MixtureState> lanes_from_json(const Json& json, const Mixture& mixture,
                                          const std::string& what);

// How many lanes they are of; 0: it does not say.
int64_t num_lanes_in(const Json& json);
// The rows that all batches before them took; `batches`: their number.
int64_t rows_taken_in(const Json& json, int64_t batches, const std::string& what);

}  // namespace skein
