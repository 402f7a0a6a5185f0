#include "skein/data/lanes/batch.h"

namespace skein {

Batch::Batch(int64_t first_lane, int64_t sequences, int64_t sequence_length)
    : first_lane(first_lane),
      sequences(sequences),
      sequence_length(sequence_length),
      tokens(sequences * sequence_length),
      labels(sequences * sequence_length),
      positions(sequences * sequence_length),
      attention_starts(sequences * sequence_length) {}

std::vector<int32_t> Batch::document_starts(int64_t index) const {
  std::vector<int32_t> starts;
  const auto attention = row(attention_starts, index);
  for (int32_t t = 0; t < sequence_length; ++t) {
    if (attention[t] == t) starts.push_back(t);
  }
  return starts;
}

int64_t Batch::bytes(int64_t sequences, int64_t sequence_length) {
  constexpr int64_t kNumArrays = 4;
  return kNumArrays * static_cast<int64_t>(sizeof(int32_t)) * sequences * sequence_length;
}

Json batch_to_json(const Batch& batch, std::span<const RowSegment> segments,
                   std::span<const std::string> corpora) {
  Json rows = Json::array();
  for (int64_t r = 0; r < batch.sequences; ++r) {
    rows.push_back({{"lane", batch.lane(r)},
                    {"tokens", batch.row(batch.tokens, r)},
                    {"labels", batch.row(batch.labels, r)},
                    {"positions", batch.row(batch.positions, r)},
                    {"document_starts", batch.document_starts(r)},
                    {"documents", Json::array()}});
  }
  for (const RowSegment& segment : segments) {
    Json document = {
        {"document", segment.document}, {"begin", segment.begin}, {"end", segment.end}};
    if (!corpora.empty()) document["source"] = corpora[segment.corpus];
    rows.at(static_cast<size_t>(segment.row))["documents"].push_back(std::move(document));
  }
  return {{"step", batch.step}, {"rows", std::move(rows)}};
}

}  // namespace skein
