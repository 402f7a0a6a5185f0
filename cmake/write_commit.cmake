# Writes OUT, a source that holds the commit of SOURCE_DIR, where that is not what OUT holds:
#   cmake -DSOURCE_DIR=DIR -DOUT=FILE.cc -P cmake/write_commit.cmake
get_filename_component(source_dir ${SOURCE_DIR} REALPATH)
get_filename_component(above ${source_dir} DIRECTORY)
set(ENV{GIT_CEILING_DIRECTORIES} ${above})  # sources without .git in somebody's repository are not that one's
execute_process(COMMAND git --no-optional-locks describe --always --dirty --exclude=* --abbrev=12
                WORKING_DIRECTORY ${source_dir} RESULT_VARIABLE failed OUTPUT_VARIABLE commit
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(failed)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[
#include "skein/cli/shared/build_info.h"

namespace skein {

const char* const kCommit = "@commit@";

}  // namespace skein
]])
