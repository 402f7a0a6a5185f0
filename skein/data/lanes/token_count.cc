#include "skein/data/lanes/token_count.h"

#include <algorithm>
#include <vector>

namespace skein {

TokenCount count_tokens(const LaneContext& context, int64_t most_bytes) {
  const CorpusBlocks& blocks = context.blocks();
  const int64_t all = blocks.num_blocks();
  const double share = static_cast<double>(most_bytes) / static_cast<double>(blocks.num_bytes());
  const int64_t counted =
      share >= 1
          ? all
          : std::clamp<int64_t>(static_cast<int64_t>(share * static_cast<double>(all)), 1, all);
  TokenCount count;
  std::vector<int32_t> tokens;
  int64_t found = 0;
  for (int64_t i = 0; i < counted; ++i) {
    const ByteRange block =
        blocks.block(static_cast<int64_t>(static_cast<__int128>(i) * all / counted));
    for (int64_t position = block.begin; position < block.end;) {
      const Segment segment = blocks.segment(position, block.end);
      context.tokenize(segment, tokens);
      found += static_cast<int64_t>(tokens.size());
      position = segment.range.end;
    }
    count.counted_bytes += block.size();
  }
  count.is_exact = counted == all;
  count.tokens = static_cast<double>(found) * static_cast<double>(blocks.num_bytes()) /
                 static_cast<double>(count.counted_bytes);
  return count;
}

}  // namespace skein
