// Any bytes with their right checksum must give an Error, or a record whose data do not match it.
#include <string>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/replica/record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<std::byte> snapshot(4096, std::byte{3});
  const std::string rest(reinterpret_cast<const char*>(data), size);
  try {
    skein::ReplicaRecord record(skein::xxh3_128_hex(std::as_bytes(std::span(rest))) + rest, "fuzz");
    record.verify(snapshot);
    record.take_part();
  } catch (const skein::Error&) {
  }
  return 0;
}
