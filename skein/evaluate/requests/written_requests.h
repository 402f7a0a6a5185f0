// The requests of a file that has them written out (tasks/request_file.h).
//
// Format    a line each, {"request_type": "loglikelihood", "request": {"context", "continuation"},
//           "doc_id", "idx", "label"}. Lines with one doc_id, one behind the other, are the choices
//           of a document, in order of idx. `label`: the index of the right one; with one choice it
//           may be anything. The type may be generate_until_and_loglikelihood as well, of which
//           the log-likelihood is asked
// Left out  requests without a context of their own, whose doc_id is 1,000,000 or more
// Limits    2 GiB, decompressed
// Errors    kInvalid "FILE, line N: ..."; kUnsupported for another request_type
#pragma once

#include <filesystem>
#include <vector>

#include "skein/evaluate/requests/requests.h"

namespace skein {

std::vector<DocumentRequests> read_requests(const std::filesystem::path& file);

}  // namespace skein
