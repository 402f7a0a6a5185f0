#include "skein/record/files/events.h"

#include <fmt/format.h>

#include <chrono>

#include "skein/base/error.h"
#include "skein/base/machine/machine.h"
#include "skein/base/text/json_text.h"

namespace skein {

double unix_time() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string event_line(double time, std::string_view event, const OrderedJson& fields) {
  if (!fields.is_object()) {
    fail(ErrorCode::kInternal, "event {}: its fields are a JSON {}, not an object", event,
         fields.type_name());
  }
  std::string line =
      fmt::format("{{\"time\": {}, \"event\": {}", time, json_text(OrderedJson(event)));
  for (const auto& [key, value] : fields.items()) {
    line += fmt::format(", {}: {}", json_text(OrderedJson(key)), json_text(value));
  }
  return line + "}";
}

void EventLog::append(std::string_view event, OrderedJson fields) {
  fields["host"] = node_name();
  fields["boot"] = boot_name();
  fields["clock"] = boot_seconds();
  writer_.append(event_line(unix_time(), event, fields));
}

}  // namespace skein
