// The records of a rendezvous as JSON in a key-value store.
#include <algorithm>
#include <set>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/store/key_value_store.h"
#include "skein/supervise/rendezvous_store.h"

namespace skein {
namespace {

constexpr std::string_view kHost = "host-", kGeneration = "generation-", kJson = ".json";
constexpr const char *kDigest = "digest.json", *kDigestList = "digest-hosts.json";

std::string name_of(const std::string& host) {
  return std::string(kHost) + host + std::string(kJson);
}

std::string host_of(const std::string& name) {
  return name.substr(kHost.size(), name.size() - kHost.size() - kJson.size());
}

std::string name_of(int64_t number) { return fmt::format("{}{:08}{}", kGeneration, number, kJson); }

// 0: this is not the name of a generation.
int64_t number_of(const std::string& name) {
  const size_t around = kGeneration.size() + kJson.size();
  if (name.size() != around + 8 || !name.ends_with(kJson)) return 0;
  const std::string digits = name.substr(kGeneration.size(), 8);
  return digits.find_first_not_of("0123456789") == digits.npos ? std::stoll(digits) : 0;
}

class JsonRecords : public RecordStore {
 public:
  explicit JsonRecords(std::shared_ptr<KeyValueStore> store) : store_(std::move(store)) {}

  const std::string& text() const override { return store_->text(); }

  void write(const HostRecord& record) override {
    store_->write(name_of(record.host), json_text(host_to_json(record)));
  }
  void remove(const std::string& host) override { store_->remove(name_of(host)); }

  std::vector<HostRecord> hosts(const std::set<std::string>& known, std::set<std::string>& unread,
                                const std::function<void()>& after_each) override {
    std::set<std::string> known_names;
    for (const std::string& host : known) known_names.insert(name_of(host));
    std::vector<HostRecord> hosts;
    store_->visit(std::string(kHost), known_names,
                  [&](const std::string& name, Result<std::string> text) {
                    if (text.ok()) {
                      read_host(name, text.value(), hosts);
                    } else {
                      const bool is_record = name.ends_with(kJson) && name.size() > kHost.size();
                      if (is_record && text.error().code() == ErrorCode::kIo)
                        unread.insert(host_of(name));
                      pass_over(name, text.error());
                    }
                    after_each();
                  });
    return hosts;
  }

  int64_t newest_number() override {
    int64_t number = 0;
    for (const std::string& name : store_->names(std::string(kGeneration))) {
      number = std::max(number, number_of(name));
    }
    return number;
  }

  SharedGeneration generation(int64_t number) override {
    const std::string what = store_->text() + "/" + name_of(number);
    const std::optional<std::string> text = store_->read(name_of(number));
    if (!text) return {};
    GenerationRecord generation = generation_from_json(parse_json(*text, what), what);
    if (generation.number != number) {
      fail(ErrorCode::kInvalid, "{}: number is {}, expected that of its name", what,
           generation.number);
    }
    return generation;
  }

  bool create(const GenerationRecord& generation) override {
    return store_->create(name_of(generation.number), json_text(generation_to_json(generation)));
  }

  std::optional<HostDigest> digest() override {
    std::optional<HostDigest> digest;
    read_if_valid(kDigest, [&](const Json& json, const std::string& what) {
      digest = digest_from_json(json, what);
    });
    return digest;
  }
  void write(const HostDigest& digest) override {
    store_->write(kDigest, json_text(digest_to_json(digest)));
  }

  std::shared_ptr<const DigestList> digest_list() override {
    std::shared_ptr<const DigestList> list;
    read_if_valid(kDigestList, [&](const Json& json, const std::string& what) {
      list = std::make_shared<const DigestList>(digest_list_from_json(json, what));
    });
    return list;
  }
  void write(std::shared_ptr<const DigestList> list) override {
    store_->write(kDigestList, json_text(digest_list_to_json(*list)));
  }

 private:
  void read_host(const std::string& name, const std::string& text, std::vector<HostRecord>& hosts) {
    const std::string what = store_->text() + "/" + name;
    try {
      HostRecord host = host_from_json(parse_json(text, what), what);
      const std::string expected = name_of(host.host);
      if (name != expected) {
        fail(ErrorCode::kInvalid, "{} is the record of host \"{}\": expected the name {}", what,
             host.host.substr(0, 100), expected.substr(0, 100));
      }
      hosts.push_back(std::move(host));
    } catch (const Error& error) {
      pass_over(name, error);
    }
  }

  template <typename Read>
  void read_if_valid(const char* name, const Read& read) {
    try {
      const std::string what = store_->text() + "/" + name;
      if (const std::optional<std::string> text = store_->read(name)) {
        read(parse_json(*text, what), what);
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalid) throw;
      pass_over(name, error);
    }
  }

  void pass_over(const std::string& name, const Error& error) {
    if (told_.insert(name).second) log::warn("passed over in the rendezvous: {}", error.what());
  }

  const std::shared_ptr<KeyValueStore> store_;
  std::set<std::string> told_;  // records that are not what they should be
};

}  // namespace

std::unique_ptr<RecordStore> record_store(std::shared_ptr<KeyValueStore> store) {
  return std::make_unique<JsonRecords>(std::move(store));
}

std::unique_ptr<RendezvousStore> shared_store(std::shared_ptr<KeyValueStore> store) {
  return digest_store(record_store(std::move(store)));
}

std::optional<GenerationRecord> newest_generation(std::shared_ptr<KeyValueStore> store) {
  const std::unique_ptr<RecordStore> records = record_store(std::move(store));
  const int64_t number = records->newest_number();
  if (number == 0) return std::nullopt;
  const SharedGeneration newest = records->generation(number);
  if (!newest) {
    fail(ErrorCode::kIo, "{}/{} was removed while it was read", records->text(), name_of(number));
  }
  return *newest;
}

}  // namespace skein
