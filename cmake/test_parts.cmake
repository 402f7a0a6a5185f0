# What scripts/test.sh runs, and what it leaves to scripts/check.sh: the one place that says so. Both CMake
# and ctest read this file (cmake/SkeinParts.cmake).
#
# Every test has the label of its kind: unit, whole (the whole program), emulated (CUDA on the CPU) or lint.
# One that matches a row of SKEIN_LEFT_OUT has the label check.PART as well: scripts/test.sh runs all tests
# but these, `scripts/check.sh PART` the others. tests/scripts/parts_test.py sees that each row matches a
# test, and that each PART is one of scripts/check.sh.
set(SKEIN_LEFT_OUT
  "fuzz ^fuzz/all$"
  "threads ^threads/all$"
  "cuda ^cuda/all$"
  "bench ^bench/"
  "environment ^environment/all$"
  "layouts ^layouts/"
  "layouts ^tests/Layouts\\.AllOfThemBuild$"
  "layouts ^tests/Layouts\\.TrainAsOneWorkerDoes(InEightBits|WithStochasticRounding|WithMasterWeights)$"
  "cuda_emulated ^cuda_emulated/attention_wgmma$"
  "cuda_emulated ^cuda_emulated/gpu_check$"
  "cuda_emulated ^cuda_emulated/goldens_25_steps$"
  "cuda_emulated ^cuda_emulated/.*ThreadRanks\\.[^/]*/(Data2Tensor2|Data2Context2|Data2Context2Zero3|Pipeline2Tensor2)([^A-Za-z0-9]|$)"
  "machines ^supervise/Hosts/CallsOnTheStore\\..*/4096$"
  "tidy ^lint/tidy$"
  "pjrt ^pjrt/(AttentionContext\\.|Attention\\.(EachKindOfProduct|LongSequences|SeveralBlocksOfWideHeads|MatchesTheDefinition)|AdamwSplit\\.HasTheBitsOfTheWhole|(Layer|Rms)Norm\\.FindsTheLargest)"
  "pjrt ^pjrt/goldens_all$"
  "objects ^objects/checkpoint_long$"
)

# Tests that other work on the machine disturbs: they run alone.
set(SKEIN_ALONE "/MatmulCeiling\\.")

function(skein_labels_of test result)
  if(test MATCHES "^(cuda_emulated|cudnn)/|^tests/Cuda")
    set(labels emulated)
  elseif(test MATCHES "^lint/")
    set(labels lint)
  elseif(test MATCHES "^(bench|cuda|docs|environment|fuzz|launch|layouts|monitoring|objects|package|pjrt|scripts|survival|tests|threads)/[^A-Z]|^tests/")
    set(labels whole)
  else()
    set(labels unit)
  endif()
  foreach(row ${SKEIN_LEFT_OUT})
    string(REGEX REPLACE " .*" "" part "${row}")
    string(REGEX REPLACE "^[^ ]* " "" pattern "${row}")
    if(test MATCHES "${pattern}")
      list(APPEND labels check.${part})
      break()
    endif()
  endforeach()
  set(${result} ${labels} PARENT_SCOPE)
endfunction()
