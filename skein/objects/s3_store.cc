#include "skein/objects/s3_store.h"

#include <arrow/filesystem/s3fs.h>
#include <arrow/io/interfaces.h>
#include <arrow/util/thread_pool.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <latch>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "skein/base/error.h"
#include "skein/base/threads/quiet_thread.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

// How often a request that may succeed later is made again.
constexpr int64_t kMaxRepeats = 10;
constexpr int64_t kFirstPauseMs = 200, kLongestPauseMs = 20'000;
constexpr double kConnectSeconds = 10, kSilentSeconds = 20;

std::atomic<int64_t> num_repeated{0};

// Before the repeat of that number, from 0. Full jitter: those that were refused together do not
// come back together.
int64_t repeat_pause_ms(int64_t num_repeats) {
  thread_local std::minstd_rand random(std::random_device{}());
  const int64_t longest =
      std::min(kLongestPauseMs, kFirstPauseMs << std::min<int64_t>(num_repeats, 20));
  return std::uniform_int_distribution<int64_t>(0, longest)(random);
}

class Repeats : public arrow::fs::S3RetryStrategy {
 public:
  bool ShouldRetry(const AWSErrorDetail& error, int64_t num_repeats) override {
    const bool again = error.should_retry && num_repeats < kMaxRepeats;
    if (again) ++num_repeated;
    return again;
  }
  int64_t CalculateDelayBeforeNextRetry(const AWSErrorDetail&, int64_t num_repeats) override {
    return repeat_pause_ms(num_repeats);
  }
};

std::string variable(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  }
  return "";
}

std::string endpoint() { return variable({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}); }

// Starts all threads of Arrow's input and output, which otherwise start when there is work.
void start_io_threads() {
  arrow::internal::Executor& threads = *arrow::io::default_io_context().executor();
  const auto all_run = std::make_shared<std::latch>(threads.GetCapacity());
  for (int i = 0; i < threads.GetCapacity(); ++i) {
    if (!threads.Spawn([all_run] { all_run->arrive_and_wait(); }).ok()) all_run->count_down();
  }
  all_run->wait();
}

// Threads of libraries leave signals to the program: a supervisor waits for its own, which any
// thread that does not hold them back would get.
class SignalsHeldBack {
 public:
  SignalsHeldBack() {
    const sigset_t held = signals_to_hold_back();
    pthread_sigmask(SIG_SETMASK, &held, &former_);
  }
  ~SignalsHeldBack() { pthread_sigmask(SIG_SETMASK, &former_, nullptr); }
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

 private:
  sigset_t former_;
};

// AWS's library must end before what it uses does. Arrow keeps a list of clients that ends at exit,
// too, and begins with the first client: so one is made before the end is arranged.
void start_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    const SignalsHeldBack held_back;
    // Checksums in trailers, which AWS's library adds of itself, are more than other stores know;
    // what is stored has checksums of our own.
    if (!endpoint().empty()) ::setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required", 0);
    arrow::fs::S3GlobalOptions options = arrow::fs::S3GlobalOptions::Defaults();
    options.log_level = arrow::fs::S3LogLevel::Off;  // each refusal would be a line
    if (const arrow::Status status = arrow::fs::InitializeS3(options); !status.ok()) {
      fail(ErrorCode::kInternal, "S3: {}", status.message());
    }
    arrow::fs::S3Options options_of_none = arrow::fs::S3Options::Anonymous();
    options_of_none.region = "us-east-1";
    if (const auto made = arrow::fs::S3FileSystem::Make(options_of_none); !made.ok()) {
      fail(ErrorCode::kInternal, "S3: {}", made.status().message());
    }
    start_io_threads();
    std::atexit([] { (void)arrow::fs::EnsureS3Finalized(); });
  });
}

arrow::fs::S3Options options_for(const ObjectUrl& url) {
  arrow::fs::S3Options options = arrow::fs::S3Options::Defaults();
  options.region = variable({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (std::string store = endpoint(); !store.empty()) {
    if (const size_t colon = store.find("://"); colon != std::string::npos) {
      options.scheme = store.substr(0, colon);
      store.erase(0, colon + 3);
    }
    while (store.ends_with('/')) store.pop_back();
    options.endpoint_override = store;
    if (options.region.empty()) options.region = "us-east-1";  // its name is part of signatures
  } else if (options.region.empty()) {
    options.region = value_or_fail(arrow::fs::ResolveS3BucketRegion(url.bucket), url.text());
  }
  options.connect_timeout = kConnectSeconds;
  options.request_timeout = kSilentSeconds;
  options.retry_strategy = std::make_shared<Repeats>();
  options.allow_delayed_open = true;  // a small object is written by one request
  return options;
}

}  // namespace

void count_repeated_request() { ++num_repeated; }

int64_t repeated_requests() { return num_repeated; }

void fail_object(const std::string& url, const std::string& found) {
  const auto says = [&](std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](const char* word) { return found.find(word) != std::string::npos; });
  };
  if (says({"NO_SUCH_BUCKET", "NO_SUCH_KEY", "RESOURCE_NOT_FOUND", "Path does not exist"})) {
    fail(ErrorCode::kNotFound, "{}: no such object or bucket ({})", url, found);
  }
  if (says({"ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE", "INVALID_CLIENT_TOKEN_ID",
            "EXPIRED_TOKEN", "HTTP status 403", "HTTP status 401"})) {
    // Not kInvalid: it says nothing of what is stored.
    fail(ErrorCode::kIo,
         "{}: refused ({}): expected credentials that may do this, in AWS_ACCESS_KEY_ID and "
         "AWS_SECRET_ACCESS_KEY, ~/.aws/credentials or the role of this machine",
         url, found);
  }
  fail(ErrorCode::kIo, "{}: failed, after {} repeated requests: {} (store: {})", url,
       num_repeated.load(), found,
       endpoint().empty() ? "AWS's own; AWS_ENDPOINT_URL names another" : endpoint());
}

// One a bucket: buckets lie in regions.
std::shared_ptr<arrow::fs::S3FileSystem> store_of(const ObjectUrl& url) {
  static std::mutex mutex;
  // Never destroyed: AWS's library ends before static objects do.
  static auto& stores = *new std::map<std::string, std::shared_ptr<arrow::fs::S3FileSystem>>();
  const std::lock_guard lock(mutex);
  auto& store = stores[url.bucket];
  if (store == nullptr) {
    start_library();
    store = value_or_fail(arrow::fs::S3FileSystem::Make(options_for(url)), url.text());
  }
  return store;
}
void read_whole(arrow::io::RandomAccessFile& file, int64_t begin, std::span<uint8_t> target,
                const std::string& url) {
  const auto wanted = static_cast<int64_t>(target.size());
  for (int64_t repeats = 0;; ++repeats) {
    const int64_t came = value_or_fail(file.ReadAt(begin, wanted, target.data()), url);
    if (came == wanted) return;
    if (repeats == kMaxRepeats) {
      fail_object(url,
                  fmt::format("{} bytes came instead of {}, from byte {}", came, wanted, begin));
    }
    count_repeated_request();
    std::this_thread::sleep_for(std::chrono::milliseconds(repeat_pause_ms(repeats)));
  }
}

}  // namespace skein
