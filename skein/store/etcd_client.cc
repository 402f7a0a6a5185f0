#include "skein/store/etcd_client.h"

#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/store/key_value_store.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxAnswerBytes = 64 << 20;
constexpr int kNotFoundStatus = 404;
constexpr const char *kPut = "/v3/kv/put", *kTransaction = "/v3/kv/txn";
// What etcd says where a token is not one, or no more; the last where there was none.
constexpr std::string_view kOldTokens[] = {"invalid auth token", "revision of auth store is old",
                                           "user name is empty"};
constexpr std::string_view kNoUsers = "authentication is not enabled";

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
       json_text(json).substr(0, 200));
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

bool says(const std::string& message, std::string_view words) {
  return message.find(words) != message.npos;
}

// What etcd says of an error; of a stream it is one level deeper.
std::string message_of(const HttpAnswer& answer) {
  const Json json = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("error")) return "";
  const Json& error = json["error"];
  if (error.is_string()) return short_text(error.get<std::string>());
  const bool is_deeper = error.is_object() && error.contains("message");
  return is_deeper && error["message"].is_string() ? short_text(error["message"].get<std::string>())
                                                   : "";
}

bool is_old_token(const std::string& message) {
  return std::any_of(std::begin(kOldTokens), std::end(kOldTokens),
                     [&](std::string_view words) { return says(message, words); });
}

// A member without a leader, or that is stopping, says so with 5xx: another may do. One that has
// too much to do, or gave up on the call, with these.
bool is_passing(long status) {
  return status == 0 || status >= 500 || status == 408 || status == 429 || status == 499;
}

}  // namespace

EtcdClient::EtcdClient(std::vector<std::string> endpoints, bool is_encrypted,
                       const EtcdAccess& access, const std::string& prefix)
    : endpoints_(std::move(endpoints)),
      scheme_(is_encrypted ? "https://" : "http://"),
      prefix_(prefix),
      user_(access.user),
      password_(access.password),
      certificates_({access.ca_file, access.cert_file, access.key_file}),
      http_(certificates_),
      tokens_(endpoints_.size()),
      is_under_way_(access.is_under_way) {}

Json EtcdClient::call(const std::string& path, const Json& body) {
  const Lock lock(mutex_);
  const auto deadline = Clock::now() + std::chrono::duration<double>(kCallSeconds);
  const std::string text = exact_json(body, "a request to etcd");
  std::string problems;
  bool is_mistake = false, is_passing_elsewhere = false;
  for (size_t tried = 0; tried < endpoints_.size(); ++tried) {
    const std::string& endpoint = endpoints_[next_];
    const double left = std::chrono::duration<double>(deadline - Clock::now()).count();
    const double share = left / static_cast<double>(endpoints_.size() - tried);
    HttpAnswer answer = ask(next_, path, text, share);
    if (answer.was_cut && !is_under_way_) {
      answer.mistake = http_.why_cut(scheme_ + endpoint, kCallSeconds);
    }
    if (answer.status == 200) {
      is_under_way_ |= path == kPut || path == kTransaction;
      return parse_json(answer.body, "the answer of etcd at " + endpoint);
    }
    const std::string message = message_of(answer);
    if (says(message, "lease not found")) {
      fail(ErrorCode::kNotFound, "etcd at {} knows this run's lease no more ({})", endpoint,
           message);
    }
    const std::string mistake = mistake_of(answer, message);
    is_mistake |= !mistake.empty();
    is_passing_elsewhere |= mistake.empty();
    if (mistake.empty() && !is_passing(answer.status)) {
      if (answer.status == kNotFoundStatus && message.empty()) {
        fail(ErrorCode::kInvalid, "{} knows no {}: is it an etcd of 3.4 or later?", endpoint, path);
      }
      fail(ErrorCode::kInvalid, "etcd at {} refuses {} with status {}: {}", endpoint, path,
           answer.status, message.empty() ? short_text(answer.body) : message);
    }
    const std::string problem = !mistake.empty()     ? mistake
                                : answer.status == 0 ? answer.problem
                                : message.empty()    ? fmt::format("status {}", answer.status)
                                                     : message;
    problems += fmt::format("{}{}: {}", problems.empty() ? "" : "; ", endpoint, problem);
    next_ = (next_ + 1) % endpoints_.size();
  }
  if (is_mistake && !is_passing_elsewhere && !is_under_way_)
    fail(ErrorCode::kUsage, "etcd at {}", problems);
  fail(ErrorCode::kIo, "etcd does not answer ({})", problems);
}

// With a new token where the one it had is over.
HttpAnswer EtcdClient::ask(size_t at, const std::string& path, const std::string& body,
                           double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  const auto left = [&] { return std::chrono::duration<double>(deadline - Clock::now()).count(); };
  for (bool is_new = false;; is_new = true) {
    if (!user_.empty() && !tokens_[at]) {
      if (auto refused = take_token(at, left())) return *std::move(refused);
    }
    HttpAnswer answer = http_.post(scheme_ + endpoints_[at] + path, body, left(), kMaxAnswerBytes,
                                   tokens_[at].value_or(""));
    if (user_.empty() || is_new || answer.status == 200 || answer.status == 0) return answer;
    if (!is_old_token(message_of(answer))) return answer;
    tokens_[at].reset();
  }
}

// The answer where it is none.
std::optional<HttpAnswer> EtcdClient::take_token(size_t at, double seconds) {
  const Json body = {{"name", user_}, {"password", password_}};
  HttpAnswer answer =
      http_.post(scheme_ + endpoints_[at] + "/v3/auth/authenticate",
                 exact_json(body, "the user and password of etcd"), seconds, kMaxAnswerBytes);
  if (answer.status != 200) {
    if (!says(message_of(answer), kNoUsers)) return answer;
    tokens_[at] = "";
    return std::nullopt;
  }
  const Json given = parse_json(answer.body, "the answer of etcd at " + endpoints_[at]);
  const Json& token = member(given, "token");
  const bool is_one = token.is_string() && !token.get_ref<const std::string&>().empty();
  if (!is_one)
    fail(ErrorCode::kInvalid, "etcd at {} gives user {} no token", endpoints_[at], user_);
  tokens_[at] = token.get<std::string>();
  return std::nullopt;
}

// What waiting does not mend, and what does; "": it is none. The password is in none of it.
std::string EtcdClient::mistake_of(const HttpAnswer& answer, const std::string& message) const {
  if (!answer.mistake.empty()) return answer.mistake;
  if (says(message, "permission denied")) {
    return fmt::format(
        "user \"{}\" may not read and write the keys that begin with {}/ ({}): `etcdctl role "
        "grant-permission ROLE readwrite {}/ --prefix=true` lets those of a role",
        user_, prefix_, message, prefix_);
  }
  if (says(message, "invalid user ID or password")) {
    return fmt::format(
        "it knows no user \"{}\" with this password ({}): see launch.etcd_user and "
        "launch.etcd_password_file, or ETCDCTL_USER and ETCDCTL_PASSWORD",
        user_, message);
  }
  if (user_.empty() && is_old_token(message)) {
    return fmt::format(
        "it lets in only users ({}): name one in launch.etcd_user and a file with "
        "the password in launch.etcd_password_file, or set ETCDCTL_USER",
        message);
  }
  if (says(answer.body, "CommonName of client")) {
    return fmt::format(
        "it takes no certificate with a common name from a user who asks over HTTP "
        "({} has one): use one without, such as of the subject /O=skein",
        certificates_.cert_file);
  }
  return "";
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
  call(kPut, put_request(key, value, lease));
}

bool EtcdClient::create(const std::string& key, const std::string& value, int64_t lease) {
  const Json unmade = {
      {"key", to_base64(key)}, {"target", "CREATE"}, {"result", "EQUAL"}, {"create_revision", "0"}};
  const Json answer = call(
      kTransaction, {{"compare", Json::array({unmade})},
                     {"success", Json::array({{{"request_put", put_request(key, value, lease)}}})},
                     {"failure", Json::array({{{"request_range", {{"key", to_base64(key)}}}}})}});
  const Json& succeeded = member(answer, "succeeded");
  if (succeeded.is_boolean() && succeeded.get<bool>()) return true;
  const Json& responses = member(answer, "responses");
  if (!responses.is_array() || responses.size() != 1) fail_shape(answer);
  const auto found = key_values(member(responses.front(), "response_range"));
  return !found.empty() && found.front().value == value;
}

// A transaction whose condition never holds: rights are looked at for both of its branches.
void EtcdClient::check_rights() {
  const std::string begin = prefix_ + "/";
  const Json never = {{"key", to_base64(begin)},
                      {"target", "CREATE"},
                      {"result", "EQUAL"},
                      {"create_revision", "9223372036854775807"}};
  const Json all = {{"key", to_base64(begin)},
                    {"range_end", to_base64(end_of(begin))},
                    {"limit", "1"},
                    {"keys_only", true}};
  call(kTransaction, {{"compare", Json::array({never})},
                      {"success", Json::array({{{"request_put", put_request(begin, "", 0)}}})},
                      {"failure", Json::array({{{"request_range", all}}})}});
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
