// What the files beside a vocabulary say of a tokenizer, resolved as transformers 5 does.
//
// tokenizer_config.json    eos_token, bos_token, add_bos_token, added_tokens_decoder,
//                          tokenizer_class
// special_tokens_map.json  eos_token and bos_token; it comes first where tokenizer_config.json has
//                          no added_tokens_decoder, and is not read where it has one
// added_tokens.json        added tokens, likewise
// generation_config.json,  eos_token_id, where no file names an eos_token
// config.json
//
// Errors   Error{kInvalid | kCorrupt} naming the file, the key and what was expected
// Source   transformers 5.24: PreTrainedTokenizerBase._from_pretrained and
//          TokenizersBackend.__init__
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/base/text/json.h"
#include "skein/data/tokenizer/byte_level/added_token.h"

namespace skein {

class TokenizerFolder {
 public:
  // `files`: of a tokenizer; others that are read beside them are found by the first's folder.
  explicit TokenizerFolder(std::span<const fs::path> files);

  struct Named {
    std::string text;
    fs::path file;  // that says so
  };
  // "eos_token", "bos_token" or "mask_token".
  std::optional<Named> special(const char* key) const;
  // Of generation_config.json, else of config.json: the first id of eos_token_id.
  struct Id {
    int64_t id = 0;
    fs::path file;
  };
  std::optional<Id> model_eos() const;

  // Whether a text begins with bos_token; nullopt where no file says so, or a tokenizer.json has a
  // template that does.
  std::optional<bool> adds_bos() const;

  // What added_tokens_decoder says, else added_tokens.json.
  const std::vector<AddedToken>& added() const { return added_; }
  // The file that names them.
  const fs::path& added_file() const { return added_file_; }

  // tokenizer_config.json, and special_tokens_map.json; objects, empty where there is none.
  const Json& config() const { return config_; }
  const Json& special_map() const { return special_map_; }
  bool flag(const char* key) const;  // of tokenizer_config.json; false where it is not there
  // Without "Fast"; empty where none is named.
  std::string class_name() const;
  std::string model_type() const;  // of config.json; empty where there is none

 private:
  static TokenizerJson reader(const fs::path& file);
  Json object_of(const fs::path& file) const;
  void read_added();
  void read_decoder();
  void read_added_file();

  fs::path folder_;
  fs::path config_file_, special_map_file_, added_tokens_file_, added_file_;
  bool has_json_ = false;
  Json config_ = Json::object(), special_map_ = Json::object();
  std::vector<AddedToken> added_;
};

}  // namespace skein
