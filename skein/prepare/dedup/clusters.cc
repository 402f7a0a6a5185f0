#include "skein/prepare/dedup/clusters.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/units.h"
#include "skein/prepare/dedup/union_find.h"

namespace skein {
namespace {

constexpr size_t kLargestClusters = 5;

// Calls visit(pairs) for the pairs of each key of which there are several.
template <typename Visit>
void for_each_bucket(std::span<KeyValue> pairs, const Visit& visit) {
  for (size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
    while (end < pairs.size() && pairs[end].key == pairs[begin].key) ++end;
    if (end - begin > 1) visit(pairs.subspan(begin, end - begin));
  }
}

// The largest components and the sizes of all.
NearDuplicates count_clusters(UnionFind& components, uint32_t num_documents,
                              std::vector<uint32_t>& sizes) {
  NearDuplicates found;
  for (uint32_t document = 0; document < num_documents; ++document) {
    ++sizes[components.find(document)];
  }
  const auto is_larger = [](const DuplicateCluster& a, const DuplicateCluster& b) {
    return a.num_documents > b.num_documents;
  };
  for (uint32_t root = 0; root < num_documents; ++root) {
    if (sizes[root] < 2) continue;
    ++found.num_clusters;
    const DuplicateCluster cluster{root, sizes[root]};
    auto& largest = found.largest;
    largest.insert(std::upper_bound(largest.begin(), largest.end(), cluster, is_larger), cluster);
    if (largest.size() > kLargestClusters) largest.pop_back();
  }
  return found;
}

}  // namespace

void check_cluster_memory(int64_t num_documents, int64_t memory_bytes) {
  const int64_t needed = num_documents * 8 + num_documents / 8;
  if (needed > memory_bytes / 2) {
    fail(ErrorCode::kUsage,
         "{} documents or more take {} to cluster, half of --memory: expected --memory {}MiB at "
         "least, here {}",
         num_documents, format_bytes(needed), ceil_div(needed * 2, 1 << 20),
         format_bytes(memory_bytes));
  }
  if (num_documents >= INT64_C(0xffffffff)) {
    fail(ErrorCode::kUnsupported, "more than {} documents: expected fewer, or several runs",
         INT64_C(0xffffffff));
  }
}

RemovalCounts remove_equal(Partitions& keys, const DocumentTable& table, Removals& removals) {
  RemovalCounts counts;
  std::vector<std::pair<uint64_t, DocumentEntry>> bucket;
  const auto visit = [&](std::span<KeyValue> pairs) {
    bucket.clear();
    for (const KeyValue& pair : pairs) bucket.emplace_back(pair.value, table.at(pair.value));
    // Equal ones side by side, the one that stays first.
    std::sort(bucket.begin(), bucket.end(), [](const auto& a, const auto& b) {
      if (a.second.equal != b.second.equal) return a.second.equal < b.second.equal;
      if (is_preferred(a.second, b.second)) return true;
      return !is_preferred(b.second, a.second) && a.first < b.first;
    });
    for (size_t i = 1; i < bucket.size(); ++i) {
      if (bucket[i].second.equal != bucket[i - 1].second.equal) continue;
      removals.add(bucket[i].first);
      ++counts.num_documents;
      counts.num_bytes += static_cast<int64_t>(bucket[i].second.num_bytes);
    }
  };
  keys.for_each_chunk([](const KeyValue&) { return true; },
                      [&](std::span<KeyValue> chunk) { for_each_bucket(chunk, visit); });
  return counts;
}

NearDuplicates remove_near(Partitions& keys, const DocumentTable& table, Removals& removals) {
  const auto num_documents = static_cast<uint32_t>(table.size());
  UnionFind components(num_documents);
  const auto join = [&](std::span<KeyValue> bucket) {
    for (const KeyValue& pair : bucket.subspan(1)) {
      components.join(static_cast<uint32_t>(bucket.front().value),
                      static_cast<uint32_t>(pair.value));
    }
  };
  keys.for_each_chunk([&](const KeyValue& pair) { return !removals.contains(pair.value); },
                      [&](std::span<KeyValue> chunk) { for_each_bucket(chunk, join); });

  std::vector<uint32_t> of_root(num_documents);  // sizes, then the best document so far
  NearDuplicates found = count_clusters(components, num_documents, of_root);
  for (uint32_t document = 0; document < num_documents; ++document) of_root[document] = document;
  table.for_each([&](uint64_t number, const DocumentEntry& entry) {
    const auto document = static_cast<uint32_t>(number);
    const uint32_t root = components.find(document);
    if (root == document) return;  // the first of its component is its best so far
    const DocumentEntry best = table.at(of_root[root]);
    const bool is_better = is_preferred(entry, best);
    removals.add(is_better ? of_root[root] : document);
    ++found.removed.num_documents;
    found.removed.num_bytes += static_cast<int64_t>(is_better ? best.num_bytes : entry.num_bytes);
    if (is_better) of_root[root] = document;
  });
  for (DuplicateCluster& cluster : found.largest) cluster.survivor = of_root[cluster.survivor];
  return found;
}

}  // namespace skein
