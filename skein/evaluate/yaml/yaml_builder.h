// Makes a value from the events of libyaml's parser: anchors, merge keys, tags and limits.
//
// Errors  as yaml_value.h says
#pragma once

#include <yaml.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "skein/base/error.h"
#include "skein/evaluate/yaml/yaml_value.h"

namespace skein {

class YamlBuilder {
 public:
  YamlBuilder(std::string what, const YamlLimits& limits)
      : what_(std::move(what)), limits_(limits) {}

  void add(const yaml_event_t& event);

  // Undefined where no document came.
  const jinja::Value& value() const { return root_; }

 private:
  // A list or a dict whose end has not come.
  struct Open {
    yaml_mark_t mark{};
    std::string anchor;
    bool is_dict = false, has_key = false, key_is_merge = false;
    jinja::Value key;
    std::vector<jinja::Value> items;  // of a list
    std::vector<std::pair<jinja::Value, jinja::Value>> pairs;
    std::vector<std::pair<jinja::Value, yaml_mark_t>> merged;  // dicts of `<<`
    int64_t num_nodes = 1;
  };
  struct Anchored {
    jinja::Value value;
    int64_t num_nodes = 0;  // 0: it is not complete
  };

  [[noreturn]] void refuse(const yaml_mark_t& mark, const std::string& why,
                           ErrorCode code = ErrorCode::kInvalid) const;
  void add_anchor(const yaml_mark_t& mark, const std::string& name);
  void add_alias(const yaml_mark_t& mark, const std::string& name);
  void add_scalar(const yaml_event_t& event);
  void open(const yaml_mark_t& mark, const std::string& anchor, const std::string& tag,
            bool is_dict);
  void close();
  bool is_key() const { return !open_.empty() && open_.back().is_dict && !open_.back().has_key; }
  // `value` is complete: an item, a key, a value or the document.
  void put(const yaml_mark_t& mark, const std::string& anchor, jinja::Value value,
           int64_t num_nodes);
  void merge(const yaml_mark_t& mark, const jinja::Value& value);
  jinja::Value scalar(const yaml_mark_t& mark, const std::string& tag, const std::string& text);
  jinja::Value plain(const yaml_mark_t& mark, const std::string& text);
  jinja::Value dict_of(Open& open);

  std::string what_;
  YamlLimits limits_;
  std::vector<Open> open_;
  std::unordered_map<std::string, Anchored> anchored_;
  int64_t num_nodes_ = 0;
  int num_documents_ = 0;
  jinja::Value root_;
};

}  // namespace skein
