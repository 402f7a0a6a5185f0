#include "skein/prepare/dedup/clusters/clusters.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/base/threads/parallel_for.h"
#include "skein/prepare/dedup/clusters/union_find.h"

namespace skein {
namespace {

constexpr size_t kLargestClusters = 5;
constexpr uint32_t kPartDocuments = 1 << 16;  // that a thread takes at a time

// A document each: sizes of components, or their best documents.
using PerDocument = std::vector<std::atomic<uint32_t>>;

// Calls visit(pairs) for the pairs of each key of which there are several.
template <typename Visit>
void for_each_bucket(std::span<KeyedValue> pairs, const Visit& visit) {
  for (size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
    while (end < pairs.size() && pairs[end].key == pairs[begin].key) ++end;
    if (end - begin > 1) visit(pairs.subspan(begin, end - begin));
  }
}

// Calls visit(begin, end) for parts of all documents.
template <typename Visit>
void for_each_part(uint32_t num_documents, int num_threads, const Visit& visit) {
  std::vector<uint64_t> begins;
  for (uint64_t begin = 0; begin < num_documents; begin += kPartDocuments) begins.push_back(begin);
  parallel_for_each(begins, num_threads, [&](uint64_t begin) {
    visit(begin, std::min<uint64_t>(begin + kPartDocuments, num_documents));
  });
}

// Whether `a` stays rather than `b`, of any two documents of one component.
bool stays(const DocumentEntry& a, uint64_t number_of_a, const DocumentEntry& b,
           uint64_t number_of_b) {
  if (is_preferred(a, b)) return true;
  return !is_preferred(b, a) && number_of_a < number_of_b;
}

// The largest components and how many there are.
NearDuplicates count_clusters(const PerDocument& sizes) {
  NearDuplicates found;
  const auto is_larger = [](const DuplicateCluster& a, const DuplicateCluster& b) {
    return a.num_documents > b.num_documents;
  };
  for (size_t root = 0; root < sizes.size(); ++root) {
    const uint32_t size = sizes[root].load(std::memory_order_relaxed);
    if (size < 2) continue;
    ++found.num_clusters;
    const DuplicateCluster cluster{root, size};
    auto& largest = found.largest;
    largest.insert(std::upper_bound(largest.begin(), largest.end(), cluster, is_larger), cluster);
    if (largest.size() > kLargestClusters) largest.pop_back();
  }
  return found;
}

// Leaves in best[root] which document of the component stays.
void find_survivors(UnionFind& components, const DocumentTable& table, PerDocument& best,
                    int num_threads) {
  const auto offer = [&](uint64_t number, const DocumentEntry& entry) {
    const uint32_t root = components.find(static_cast<uint32_t>(number));
    if (root == number) return;  // is the best so far from the beginning
    uint32_t so_far = best[root].load(std::memory_order_relaxed);
    while (stays(entry, number, table.at(so_far), so_far) &&
           !best[root].compare_exchange_weak(so_far, static_cast<uint32_t>(number),
                                             std::memory_order_relaxed)) {
    }
  };
  for_each_part(static_cast<uint32_t>(best.size()), num_threads,
                [&](uint64_t begin, uint64_t end) { table.for_each(begin, end, offer); });
}

}  // namespace

void check_cluster_memory(int64_t num_documents, int64_t memory_bytes) {
  if (num_documents >= INT64_C(0xffffffff)) {
    fail(ErrorCode::kUnsupported,
         "{} documents: one deduplication takes {} at most: divide them, and deduplicate the parts "
         "by themselves",
         num_documents, INT64_C(0xfffffffe));
  }
  const int64_t needed = num_documents * 8 + num_documents / 8;
  if (needed <= memory_bytes / 2) return;
  fail(ErrorCode::kUsage,
       "{} documents or more take {} to cluster, half of --memory: expected --memory {}MiB at "
       "least, here {}",
       num_documents, format_bytes(needed), ceil_div(needed * 2, 1 << 20),
       format_bytes(memory_bytes));
}

RemovalCounts remove_equal(const Partitions& keys, const DocumentTable& table, Removals& removals,
                           int num_threads) {
  RemovalCounts counts;
  Mutex mutex;
  const auto visit = [&](std::span<KeyedValue> chunk) {
    RemovalCounts of_chunk;
    // Of each kind of equal ones the one that stays, of those seen so far: of one key there is one
    // kind, or by chance another.
    std::vector<std::pair<uint64_t, DocumentEntry>> best;
    for_each_bucket(chunk, [&](std::span<KeyedValue> pairs) {
      best.clear();
      for (const KeyedValue& pair : pairs) {
        std::pair document(pair.value, table.at(pair.value));
        const auto rival = std::find_if(best.begin(), best.end(), [&](const auto& each) {
          return each.second.equal == document.second.equal;
        });
        if (rival == best.end()) {
          best.push_back(document);
          continue;
        }
        if (stays(document.second, document.first, rival->second, rival->first)) {
          std::swap(document, *rival);
        }
        removals.add(document.first);
        of_chunk.add({1, static_cast<int64_t>(document.second.num_bytes)});
      }
    });
    const Lock lock(mutex);
    counts.add(of_chunk);
  };
  keys.for_each_chunk(
      num_threads, [](const KeyedValue&) { return true; }, visit);
  return counts;
}

NearDuplicates remove_near(const Partitions& keys, const DocumentTable& table, Removals& removals,
                           int num_threads) {
  const auto num_documents = static_cast<uint32_t>(table.size());
  UnionFind components(num_documents);
  const auto join = [&](std::span<KeyedValue> bucket) {
    for (const KeyedValue& pair : bucket.subspan(1)) {
      components.join(static_cast<uint32_t>(bucket.front().value),
                      static_cast<uint32_t>(pair.value));
    }
  };
  keys.for_each_chunk(
      num_threads, [&](const KeyedValue& pair) { return !removals.contains(pair.value); },
      [&](std::span<KeyedValue> chunk) { for_each_bucket(chunk, join); });

  PerDocument of_root(num_documents);  // sizes, then the best document so far
  for_each_part(num_documents, num_threads, [&](uint64_t begin, uint64_t end) {
    for (uint64_t document = begin; document < end; ++document) {
      ++of_root[components.find(static_cast<uint32_t>(document))];
    }
  });
  NearDuplicates found = count_clusters(of_root);
  for (uint32_t document = 0; document < num_documents; ++document) of_root[document] = document;
  find_survivors(components, table, of_root, num_threads);

  Mutex mutex;
  for_each_part(num_documents, num_threads, [&](uint64_t begin, uint64_t end) {
    RemovalCounts of_part;
    table.for_each(begin, end, [&](uint64_t document, const DocumentEntry& entry) {
      if (of_root[components.find(static_cast<uint32_t>(document))] == document) return;
      removals.add(document);
      of_part.add({1, static_cast<int64_t>(entry.num_bytes)});
    });
    const Lock lock(mutex);
    found.removed.add(of_part);
  });
  for (DuplicateCluster& cluster : found.largest) cluster.survivor = of_root[cluster.survivor];
  return found;
}

}  // namespace skein
