#include "skein/store/etcd_client.h"

#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "skein/base/error.h"
#include "skein/store/key_value_store.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxAnswerBytes = 64 << 20;
constexpr int kNotFoundStatus = 404;

std::string to_base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

[[noreturn]] void fail_shape(const Json& json) {
  fail(ErrorCode::kInvalid, "etcd answers {}, which is not what its API says",
       json.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 200));
}

std::string from_base64(const Json& json) {
  if (!json.is_string()) fail_shape(json);
  const std::string& text = json.get_ref<const std::string&>();
  std::string bytes(text.size() / 4 * 3, '\0');
  const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                     reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size()));
  if (length < 0 || text.size() % 4 != 0) fail_shape(json);
  const auto padding =
      std::count(text.end() - std::min<ptrdiff_t>(2, std::ssize(text)), text.end(), '=');
  bytes.resize(static_cast<size_t>(length - padding));
  return bytes;
}

// What is not there is what protobuf leaves out: zero, false, an empty text or list.
const Json& member(const Json& json, const char* key) {
  static const Json nothing;
  if (!json.is_object()) fail_shape(json);
  const auto found = json.find(key);
  return found == json.end() ? nothing : *found;
}

int64_t whole_number(const Json& json) {  // 64-bit numbers are texts
  if (json.is_null()) return 0;
  if (!json.is_string()) fail_shape(json);
  const std::string& text = json.get_ref<const std::string&>();
  int64_t number = 0;
  const auto [stop, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc() || stop != text.data() + text.size()) fail_shape(json);
  return number;
}

std::vector<EtcdClient::KeyValue> key_values(const Json& range) {
  std::vector<EtcdClient::KeyValue> found;
  const Json& list = member(range, "kvs");
  if (!list.is_null() && !list.is_array()) fail_shape(list);
  for (const Json& one : list) {
    const Json& value = member(one, "value");
    found.push_back({from_base64(member(one, "key")), value.is_null() ? "" : from_base64(value)});
  }
  return found;
}

// The first key after all that begin with `prefix`, which ends with no byte 0xff.
std::string end_of(std::string prefix) {
  ++prefix.back();
  return prefix;
}

Json put_request(const std::string& key, const std::string& value, int64_t lease) {
  return {{"key", to_base64(key)}, {"value", to_base64(value)}, {"lease", std::to_string(lease)}};
}

std::string short_text(const std::string& text) {
  std::string line = text.substr(0, text.find_first_of("\r\n")).substr(0, 200);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  return line;
}

// What etcd says of an error.
std::string message_of(const HttpAnswer& answer) {
  const Json json = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const bool says = json.is_object() && json.contains("error") && json["error"].is_string();
  return says ? short_text(json["error"].get<std::string>()) : "";
}

}  // namespace

Json EtcdClient::call(const std::string& path, const Json& body) {
  const Lock lock(mutex_);
  const auto deadline = Clock::now() + std::chrono::duration<double>(kCallSeconds);
  const std::string text = body.dump();
  std::string problems;
  for (size_t tried = 0; tried < endpoints_.size(); ++tried) {
    const std::string& endpoint = endpoints_[next_];
    const double left = std::chrono::duration<double>(deadline - Clock::now()).count();
    const double share = left / static_cast<double>(endpoints_.size() - tried);
    const HttpAnswer answer = http_.post("http://" + endpoint + path, text, share, kMaxAnswerBytes);
    if (answer.status == 200) return parse_json(answer.body, "the answer of etcd at " + endpoint);
    const std::string message = message_of(answer);
    if (message.find("lease not found") != message.npos) {
      fail(ErrorCode::kNotFound, "etcd at {} knows this run's lease no more ({})", endpoint,
           message);
    }
    // A member without a leader, or that is stopping, says so with 5xx: another may do.
    // One that has too much to do, or gave up on the call, with these.
    const bool is_passing = answer.status == 408 || answer.status == 429 || answer.status == 499;
    if (answer.status != 0 && answer.status < 500 && !is_passing) {
      if (answer.status == kNotFoundStatus && message.empty()) {
        fail(ErrorCode::kInvalid, "{} knows no {}: is it an etcd of 3.4 or later?", endpoint, path);
      }
      fail(ErrorCode::kInvalid, "etcd at {} refuses {} with status {}: {}", endpoint, path,
           answer.status, message.empty() ? short_text(answer.body) : message);
    }
    const std::string problem = answer.status == 0 ? answer.problem
                                : message.empty()  ? fmt::format("status {}", answer.status)
                                                   : message;
    problems += fmt::format("{}{}: {}", problems.empty() ? "" : "; ", endpoint, problem);
    next_ = (next_ + 1) % endpoints_.size();
  }
  fail(ErrorCode::kIo, "etcd does not answer ({})", problems);
}

std::optional<std::string> EtcdClient::get(const std::string& key) {
  const auto found = key_values(call("/v3/kv/range", {{"key", to_base64(key)}}));
  return found.empty() ? std::nullopt : std::optional(found.front().value);
}

std::vector<EtcdClient::KeyValue> EtcdClient::range(const std::string& prefix, bool keys_only) {
  return key_values(call("/v3/kv/range", {{"key", to_base64(prefix)},
                                          {"range_end", to_base64(end_of(prefix))},
                                          {"keys_only", keys_only}}));
}

void EtcdClient::put(const std::string& key, const std::string& value, int64_t lease) {
  call("/v3/kv/put", put_request(key, value, lease));
}

bool EtcdClient::create(const std::string& key, const std::string& value, int64_t lease) {
  const Json unmade = {
      {"key", to_base64(key)}, {"target", "CREATE"}, {"result", "EQUAL"}, {"create_revision", "0"}};
  const Json answer = call(
      "/v3/kv/txn", {{"compare", Json::array({unmade})},
                     {"success", Json::array({{{"request_put", put_request(key, value, lease)}}})},
                     {"failure", Json::array({{{"request_range", {{"key", to_base64(key)}}}}})}});
  const Json& succeeded = member(answer, "succeeded");
  if (succeeded.is_boolean() && succeeded.get<bool>()) return true;
  const Json& responses = member(answer, "responses");
  if (!responses.is_array() || responses.size() != 1) fail_shape(answer);
  const auto found = key_values(member(responses.front(), "response_range"));
  return !found.empty() && found.front().value == value;
}

void EtcdClient::remove(const std::string& key) {
  call("/v3/kv/deleterange", {{"key", to_base64(key)}});
}

int64_t EtcdClient::grant_lease(int64_t seconds) {
  const Json answer = call("/v3/lease/grant", {{"TTL", std::to_string(seconds)}});
  const int64_t lease = whole_number(member(answer, "ID"));
  if (lease == 0) fail_shape(answer);
  return lease;
}

bool EtcdClient::keep_lease(int64_t lease) {
  const Json answer = call("/v3/lease/keepalive", {{"ID", std::to_string(lease)}});
  return whole_number(member(member(answer, "result"), "TTL")) > 0;
}

void EtcdClient::revoke_lease(int64_t lease) {
  call("/v3/lease/revoke", {{"ID", std::to_string(lease)}});
}

}  // namespace skein
