#include "skein/runtime/pjrt/pjrt_aot_compiler.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/temp_folder.h"

namespace skein {
namespace {

TEST(GpuDescription, IsFoundInThePluginByTheNameOfTheGpu) {
  const test::TempFolder folder;
  const std::string plugin = (folder.path() / "plugin.so").string();
  const std::string one = "core_count: 1\ndevice_description_str: \"Some GPU\"\n";
  const std::string two = "core_count: 2\ndevice_description_str: \"Some GPU Mini\"\n# end";
  std::ofstream(plugin) << "code" << '\0' << one << '\0' << two << '\0' << "code";
  EXPECT_EQ(gpu_description(plugin, "Some GPU"), one);
  EXPECT_EQ(gpu_description(plugin, "Some GPU Mini"), two);
  EXPECT_EQ(gpu_description(plugin, "Another GPU"), "");
}

}  // namespace
}  // namespace skein
