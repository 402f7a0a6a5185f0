#include "skein/base/text/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/text/visible_text.h"

namespace skein::log {
namespace {

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void write(Level level, std::string_view line) {
  spdlog::default_logger_raw()->log(spdlog_level(level), visible_line(line));
}

namespace {

constexpr char kFilePattern[] = "%L %Y-%m-%dT%H:%M:%S.%e%z %v";

// spdlog would wait for the reader of a FIFO, and create the file with mode 0666.
void make_log(const fs::path& file) {
  if (file.has_parent_path()) make_folders(file.parent_path());
  open_to_append(file);
}

}  // namespace

void append_error(const std::string& file, const std::string& text) {
  make_log(file);
  spdlog::sinks::basic_file_sink_mt sink(file);
  sink.set_pattern(kFilePattern);
  const std::string line = visible_line(text);
  sink.log({"skein", spdlog::level::err, line});
  sink.flush();
}

namespace {

// A log that takes no more, as on a full disk, is no reason to end: what is said is on standard
// error as well.
void say_once(const std::string& file, const std::string& why) {
  static std::atomic<bool> is_said = false;
  if (is_said.exchange(true)) return;
  fmt::print(stderr, "skein: the log{}{} lacks lines from here on: {}\n", file.empty() ? "" : " ",
             file, why);
}

}  // namespace

void start(const std::string& file) {
  std::vector<spdlog::sink_ptr> sinks;
  sinks.push_back(std::make_shared<spdlog::sinks::stderr_color_sink_mt>(
      may_colour() ? spdlog::color_mode::automatic : spdlog::color_mode::never));
  sinks.back()->set_pattern("%^%L%$ %H:%M:%S %v");
  if (!file.empty()) {
    try {
      make_log(file);
      sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(file));
    } catch (const std::exception& error) {
      fail(ErrorCode::kIo, "cannot write the log {}: {}", file, error.what());
    }
    sinks.back()->set_pattern(kFilePattern);
  }
  auto logger = std::make_shared<spdlog::logger>("skein", sinks.begin(), sinks.end());
  logger->flush_on(spdlog::level::info);
  logger->set_error_handler([file](const std::string& why) { say_once(file, why); });
  spdlog::set_default_logger(std::move(logger));
}

namespace {

void write_to_file(spdlog::level::level_enum level, const std::string& text) {
  const auto logger = spdlog::default_logger();
  const std::string line = visible_line(text);
  for (size_t i = 1; i < logger->sinks().size(); ++i) {  // the first is standard error
    try {
      logger->sinks()[i]->log({logger->name(), level, line});
      logger->sinks()[i]->flush();
    } catch (const spdlog::spdlog_ex& error) {
      say_once("", error.what());
    }
  }
}

}  // namespace

void error_to_file(const std::string& text) { write_to_file(spdlog::level::err, text); }

void info_to_file(const std::string& text) {
  const bool has_file = spdlog::default_logger()->sinks().size() > 1;
  has_file ? write_to_file(spdlog::level::info, text) : info("{}", text);
}

void debug_to_file(const std::string& text) {
  const auto& sinks = spdlog::default_logger()->sinks();
  if (sinks.size() > 1) return write_to_file(spdlog::level::debug, text);
  const std::string line = visible_line(text);
  sinks.front()->log({"skein", spdlog::level::debug, line});
  sinks.front()->flush();
}

bool may_colour() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || *no_color == '\0';
}

bool on_terminal() { return isatty(STDERR_FILENO) == 1; }

}  // namespace skein::log
