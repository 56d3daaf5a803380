# octet_embed_text(TARGET FOLDER EXTENSION)
# Makes every FOLDER/*.EXTENSION a C++ string literal that TARGET may include as "<path below src>.inc": sources of another
# language that the program carries. Run as a script (-P), it makes one.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${INPUT} TEXT)
  file(WRITE ${OUTPUT} "R\"octet_text(${TEXT})octet_text\"\n")
  return()
endif()

function(octet_embed_text TARGET FOLDER EXTENSION)
  file(GLOB TEXTS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${FOLDER}/*.${EXTENSION})
  set(ROOT ${PROJECT_BINARY_DIR}/generated)
  foreach(TEXT ${TEXTS})
    file(RELATIVE_PATH NAME ${PROJECT_SOURCE_DIR}/src ${TEXT})
    set(OUTPUT ${ROOT}/${NAME}.inc)
    add_custom_command(OUTPUT ${OUTPUT} DEPENDS ${TEXT} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
                       COMMAND ${CMAKE_COMMAND} -DINPUT=${TEXT} -DOUTPUT=${OUTPUT} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
    target_sources(${TARGET} PRIVATE ${OUTPUT})
  endforeach()
  target_include_directories(${TARGET} PRIVATE ${ROOT})
endfunction()
