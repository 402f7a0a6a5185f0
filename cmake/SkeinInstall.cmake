# cmake --install BUILD --prefix DIR: the program, Arrow's libraries beside it, configurations, the
# documentation, the manual page, completions. What the program says of itself is asked of it then.
#
# DT_RPATH, not DT_RUNPATH, so that scripts/package.sh can put every other library there, too: it
# holds for the libraries of libraries as well.
include(GNUInstallDirs)

function(skein_install)
  set_target_properties(skein PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/skein")
  target_link_options(skein PRIVATE -Wl,--disable-new-dtags)
  install(TARGETS skein RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES $<TARGET_FILE:ArrowWheel::arrow> $<TARGET_FILE:ArrowWheel::parquet>
                $<TARGET_FILE:ArrowWheel::arrow_s3>
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/skein)
  install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/skein)
  install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md"
          PATTERN "*.svg")

  set(said ${CMAKE_BINARY_DIR}/share)
  set(manual ${said}/skein.1)
  set(of_bash ${said}/skein.bash)
  set(of_zsh ${said}/_skein)
  set(of_fish ${said}/skein.fish)
  install(CODE "
    file(MAKE_DIRECTORY ${said})
    foreach(question \"manual:${manual}\" \"completion bash:${of_bash}\" \"completion zsh:${of_zsh}\"
                     \"completion fish:${of_fish}\")
      string(REGEX MATCH \"^([^:]*):(.*)$\" _ \"\${question}\")
      set(file \"\${CMAKE_MATCH_2}\")
      separate_arguments(command UNIX_COMMAND \"\${CMAKE_MATCH_1}\")
      execute_process(COMMAND ${CMAKE_BINARY_DIR}/skein \${command} OUTPUT_FILE \"\${file}\"
                      COMMAND_ERROR_IS_FATAL ANY)
    endforeach()")
  install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${of_bash} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          RENAME skein)
  install(FILES ${of_zsh} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${of_fish} DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endfunction()

# The archive of scripts/package.sh in an empty root folder; what README.md says to type; what pages
# say that the program prints.
function(skein_install_tests)
  add_test(NAME package/empty_root COMMAND tests/scripts/package_test.sh
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME docs/by_hand COMMAND tests/scripts/by_hand_test.sh
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME docs/transcripts COMMAND scripts/transcripts.py --check
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME docs/pictures COMMAND scripts/pictures.py --check
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME docs/snippets COMMAND tests/scripts/doc_snippets_test.py
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME docs/examples COMMAND tests/scripts/examples_test.sh ${CMAKE_BINARY_DIR}/skein
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME docs/names COMMAND tests/scripts/doc_names_test.py
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME scripts/gpu_check COMMAND tests/scripts/gpu_check_test.py
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME scripts/gpu_check_end COMMAND tests/scripts/gpu_check_end_test.py
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME survival/soak COMMAND tests/survival/soak.py ${CMAKE_BINARY_DIR}/skein
           ${CMAKE_BINARY_DIR}/tmp --faults 5 --every 1 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME survival/bit_flips COMMAND tests/survival/bit_flips.py ${CMAKE_BINARY_DIR}/skein
           ${CMAKE_BINARY_DIR}/tmp --flips 8 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME monitoring/rules COMMAND tests/scripts/monitoring_test.py ${CMAKE_BINARY_DIR}/skein
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(monitoring/rules PROPERTIES TIMEOUT 1800 SKIP_RETURN_CODE 77)
  add_test(NAME launch/slurm COMMAND tests/slurm/slurm_test.py ${CMAKE_BINARY_DIR}/skein
           ${CMAKE_BINARY_DIR}/tmp WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME launch/queue COMMAND tests/slurm/queue_of_jobs.py ${CMAKE_BINARY_DIR}/skein
           ${CMAKE_BINARY_DIR}/tmp --jobs 10 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME launch/shards COMMAND tests/slurm/shards_test.py ${CMAKE_BINARY_DIR}/skein
           ${CMAKE_BINARY_DIR}/tmp WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME objects/ingest COMMAND tests/objects/ingest_test.py ${CMAKE_BINARY_DIR}/skein
           ${CMAKE_BINARY_DIR}/tmp WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME objects/checkpoint COMMAND tests/objects/checkpoint_test.py ${CMAKE_BINARY_DIR}/skein
           ${CMAKE_BINARY_DIR}/tmp WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME objects/checkpoint_long COMMAND tests/objects/checkpoint_test.py ${CMAKE_BINARY_DIR}/skein
           ${CMAKE_BINARY_DIR}/tmp --kills 12 --large WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME objects/train COMMAND tests/objects/train_test.py ${CMAKE_BINARY_DIR}/skein
           ${CMAKE_BINARY_DIR}/tmp WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  if(SKEIN_HAS_PJRT)
    add_test(NAME objects/compile COMMAND tests/objects/compile_test.py ${CMAKE_BINARY_DIR}/skein
             ${CMAKE_BINARY_DIR}/tmp WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(objects/compile PROPERTIES TIMEOUT 1800 SKIP_RETURN_CODE 77)
  endif()
  add_test(NAME objects/output COMMAND tests/objects/output_test.py ${CMAKE_BINARY_DIR}/skein
           ${CMAKE_BINARY_DIR}/tmp WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(objects/ingest objects/output objects/checkpoint objects/checkpoint_long objects/train PROPERTIES TIMEOUT 1800 SKIP_RETURN_CODE 77)
  add_test(NAME launch/etcd_tls COMMAND tests/store/etcd_tls_test.py ${CMAKE_BINARY_DIR}/skein
           ${CMAKE_BINARY_DIR}/tmp WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME launch/job_set COMMAND tests/launch/job_set_test.py ${CMAKE_BINARY_DIR}/skein
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(launch/slurm launch/queue launch/shards launch/job_set launch/etcd_tls PROPERTIES TIMEOUT 1800 SKIP_RETURN_CODE 77)
  set_tests_properties(launch/slurm launch/queue launch/shards PROPERTIES RUN_SERIAL ON)
  add_test(NAME survival/soak_etcd COMMAND tests/survival/soak.py ${CMAKE_BINARY_DIR}/skein
           ${CMAKE_BINARY_DIR}/tmp --faults 5 --every 1 --etcd
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set(tests ${CMAKE_SOURCE_DIR}/tests/survival)
  set(struck ${CMAKE_BINARY_DIR}/skein ${CMAKE_BINARY_DIR}/tmp)
  add_test(NAME survival/elastic COMMAND ${tests}/elastic.py ${struck} --rounds 1)
  add_test(NAME survival/crash_points
           COMMAND ${tests}/crash_points.py ${struck} --points 14 "--layouts=one worker;data 2, ZeRO 1")
  add_test(NAME survival/file_errors COMMAND ${tests}/file_errors.py ${struck} --every 9 "--layouts=one worker")
  add_test(NAME survival/power_cuts COMMAND ${tests}/power_cuts.py ${struck} --cuts 12 "--layouts=one worker")
  set(with_others survival/crash_points survival/file_errors survival/power_cuts)
  set(alone survival/soak survival/soak_etcd survival/elastic survival/bit_flips)
  set_tests_properties(package/empty_root docs/by_hand docs/transcripts ${alone} ${with_others}
                       PROPERTIES TIMEOUT 1800)
  set_tests_properties(${alone} PROPERTIES RUN_SERIAL ON)
  set_tests_properties(package/empty_root PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
