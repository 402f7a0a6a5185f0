// Files that are something else than documents, told by how they begin or by their names: what each
// is, and what makes text of it.
//
// Errors   ForeignFile, an Error{kInvalid}: a folder's are passed over, also where their names
//          promise documents
#pragma once

#include <string>
#include <string_view>

#include "skein/base/error.h"
#include "skein/base/files/file.h"

namespace skein {

class ForeignFile : public Error {
 public:
  explicit ForeignFile(const std::string& message) : Error(ErrorCode::kInvalid, message) {}
};

struct ForeignKind {
  std::string_view beginning;
  const char* what;     // "a PDF document"
  const char* command;  // that makes text of it (command_on); empty: there is none
};

constexpr size_t kForeignHeadBytes = 1024;

// Of binary data that begins so; null: none that is known.
const ForeignKind* binary_kind(std::string_view head);
// The command as a shell takes it: {0}, or {}, is the file, {1} its name without the last ending.
// An object of a store is copied to the disk before.
std::string command_on(const char* command, const fs::path& file);

// "`pdftotext a.pdf` helps"
std::string advice_of(const ForeignKind& kind, const fs::path& file);

// Throws ForeignFile for one whose first bytes, of text or not, or whose name say what it is.
void refuse_foreign(std::string_view head, const fs::path& path);

// "" for a name that may be of documents; else why no walk takes it: an unfinished download, what
// an operating system or an editor left.
std::string_view left_by_program(const std::string& name);

}  // namespace skein
