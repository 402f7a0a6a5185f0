// Decides on one document after another by the rules of text: Gopher's, C4's, FineWeb's.
//
// Order    of rules.def, which is FineWeb's; FineWeb's own rules see what C4 left of the text
// Memory   100 bytes a word of the longest document
// Cost     docs/cleaning.md has figures
// Errors   Error{kUnsupported} for a document of 4 GiB or more
// Threads  one at a time; each has a DocumentJudge of its own
#pragma once

#include "skein/prepare/clean/filters/document_filters.h"

namespace skein {

class DocumentJudge {
 public:
  explicit DocumentJudge(const CleanRules& rules);
  DocumentJudge(const DocumentJudge&) = delete;
  DocumentJudge& operator=(const DocumentJudge&) = delete;

  struct Decision {
    std::optional<Rule> rule;  // that drops the document
    std::string_view text;     // of one that stays; valid until the next document, as lines are
    std::vector<CutLine> cut;  // its lines that were cut or changed
  };
  Decision judge(std::string_view text);

 private:
  CleanRules rules_;
  bool repetition_is_on_, quality_is_on_, c4_is_on_, fineweb_is_on_;
  DocumentWords document_;
  GopherRepetition repetition_;
  C4 c4_;
  FineWeb fineweb_;
};

}  // namespace skein
