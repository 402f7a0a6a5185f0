// A plugin that is loaded, for the files of this folder: its functions, as the C interface has
// them, and errors in its own words.
#pragma once

#include <pjrt_c_api.h>

#include <string>
#include <string_view>
#include <vector>

#include "skein/runtime/pjrt/pjrt_client.h"

// The arguments of a function of the C interface, empty.
#define SKEIN_PJRT_ARGS(function, name) \
  function##_Args name{};               \
  name.struct_size = function##_Args_STRUCT_SIZE

namespace skein {

struct PjrtLibrary {
  // Loads and starts it. `setting`: what names the path, for messages. Throws as PjrtClient does.
  PjrtLibrary(std::string plugin, std::string_view setting);

  // Throws what the plugin says, if it says anything.
  void check(PJRT_Error* error, std::string_view doing) const;
  // The same as words; "": it says nothing.
  std::string words_of(PJRT_Error* error) const;
  CompiledMemory memory_of(PJRT_Executable* executable) const;
  void destroy(PJRT_Executable* executable) const;

  std::string plugin;
  const PJRT_Api* api = nullptr;
};

struct PjrtClient::Library : PjrtLibrary {
  explicit Library(const std::string& path) : PjrtLibrary(path, "device.pjrt_plugin") {}

  PJRT_Client* client = nullptr;
  std::vector<PJRT_Device*> devices;
  std::string platform_name, platform_version;
};

// One line: the first of what a platform calls its version.
std::string platform_text(std::string_view name, std::string_view version);

}  // namespace skein
