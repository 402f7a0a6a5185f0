// A store whose records are signed with the run's secret: each value is followed by a line
// "hmac-sha256 <64 hex digits>" over its place, its name and itself. A record of another run, of
// another start, or moved from another name is none of this one.
//
// Opening a place reads or makes its record `run`, so that a place that belongs to another run, or
// a wrong secret, is refused before anything is written there. entries() passes over a record
// without a right signature, and says so once; read() throws.
// Errors  Error{kUsage} at open, and in entries() where the place is another run's meanwhile: its
//         folder was removed, and somebody made it anew; Error{kNotFound} for a place that has
//         records but no `run`; Error{kInvalid} in read()
#pragma once

#include <memory>

#include "skein/store/job_secret.h"
#include "skein/store/key_value_store.h"

namespace skein {

std::unique_ptr<StoreRoot> signed_root(std::unique_ptr<StoreRoot> root, const JobSecret& secret);

}  // namespace skein
