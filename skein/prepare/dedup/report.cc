#include <fmt/format.h>

#include "skein/base/text/units.h"
#include "skein/base/text/visible_text.h"
#include "skein/prepare/dedup/dedup.h"

namespace skein {
namespace {

constexpr int64_t kExcerptCharacters = 60;

double percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

OrderedJson counts_to_json(const RemovalCounts& counts) {
  return {{"documents", counts.num_documents}, {"bytes", counts.num_bytes}};
}

std::string line(const char* name, const RemovalCounts& counts, const PieceReport& all) {
  return fmt::format("{:<16} {} ({:.2f} %), {} ({:.2f} %)\n", name,
                     counted(counts.num_documents, "document"),
                     percent(counts.num_documents, all.num_documents),
                     format_bytes(counts.num_bytes), percent(counts.num_bytes, all.num_bytes));
}

}  // namespace

OrderedJson to_json(const DedupReport& report) {
  OrderedJson json{
      {"files", report.inputs.num_files},
      {"documents", report.inputs.num_documents},
      {"bytes", report.inputs.num_bytes},
      {"empty_documents", report.inputs.num_documents_read - report.inputs.num_documents},
      {"skipped_files", report.inputs.num_skipped_files},
      {"invalid_lines", report.inputs.num_invalid_lines},
      {"contaminated", counts_to_json(report.contaminated)},
      {"equal", counts_to_json(report.equal)},
      {"near", counts_to_json(report.near)},
      {"emptied", counts_to_json(report.emptied)},
      {"kept", counts_to_json(report.kept)}};
  json["passages"] = {{"repeated", report.num_repeated_passages},
                      {"cut", report.num_cut_passages},
                      {"cut_bytes", report.num_cut_bytes}};
  json["clusters"] = {{"count", report.num_clusters}, {"largest", OrderedJson::array()}};
  for (const DedupReport::LargeCluster& cluster : report.largest) {
    json["clusters"]["largest"].push_back(
        {{"documents", cluster.num_documents},
         {"excerpt", visible_text(cluster.excerpt, kExcerptCharacters)}});
  }
  json["evaluation_sets"] = OrderedJson::array();
  for (size_t i = 0; i < report.sets.size(); ++i) {
    json["evaluation_sets"].push_back({{"name", report.sets[i].name},
                                       {"examples", report.sets[i].num_examples},
                                       {"short_examples", report.sets[i].num_short_examples},
                                       {"invalid_lines", report.sets[i].num_invalid_lines},
                                       {"contaminated_documents", report.contaminated_by_set[i]}});
  }
  json["recall"] = OrderedJson::array();
  for (const DedupReport::Recall& recall : report.recall) {
    json["recall"].push_back({{"jaccard", recall.similarity}, {"probability", recall.probability}});
  }
  return json;
}

std::string to_text(const DedupReport& report) {
  const PieceReport& all = report.inputs;
  std::string text = line("read", {all.num_documents, all.num_bytes}, all);
  if (!report.sets.empty()) text += line("contaminated", report.contaminated, all);
  for (size_t i = 0; i < report.sets.size(); ++i) {
    const EvaluationSet& set = report.sets[i];
    text += fmt::format("  {}: {} documents share text with {} examples", visible_line(set.name),
                        report.contaminated_by_set[i], set.num_examples);
    if (set.num_short_examples > 0) {
      text += fmt::format("; {} are too short to look for", set.num_short_examples);
    }
    if (set.num_invalid_lines > 0) {
      text += fmt::format("; {} lines were not valid", set.num_invalid_lines);
    }
    text += '\n';
  }
  text += line("equal", report.equal, all);
  text += line("near duplicates", report.near, all);
  if (report.num_clusters > 0) text += fmt::format("  {} clusters\n", report.num_clusters);
  for (const DedupReport::LargeCluster& cluster : report.largest) {
    text += fmt::format("  {} documents: {}\n", cluster.num_documents,
                        visible_text(cluster.excerpt, kExcerptCharacters));
  }
  if (report.num_repeated_passages > 0) {
    text += fmt::format(
        "repeated         {} passages, cut {} times, {}; {} documents were nothing "
        "else\n",
        report.num_repeated_passages, report.num_cut_passages, format_bytes(report.num_cut_bytes),
        report.emptied.num_documents);
  }
  text += line("kept", report.kept, all);
  if (!report.recall.empty()) {
    text += "pairs found      ";
    for (size_t i = 0; i < report.recall.size(); ++i) {
      text += fmt::format("{}{:.1f} % at Jaccard {}", i == 0 ? "" : ", ",
                          100 * report.recall[i].probability, report.recall[i].similarity);
    }
    text += '\n';
  }
  return text;
}

}  // namespace skein
