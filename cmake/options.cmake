# Flags that every target shares. No -m flags here: code for one instruction set lives in regions (src/op/isa.h).
add_library(octet_options INTERFACE)
target_compile_options(octet_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
                       -fno-math-errno -ffp-contract=off)
# g++ 12 reports overlapping copies inside its own std::string (GCC bug 105651); clang 14 takes a defaulted <=> for a null
# pointer.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(octet_options INTERFACE -Wno-restrict -Wzero-as-null-pointer-constant)
endif()
target_compile_definitions(octet_options INTERFACE OCTET_VERSION="${PROJECT_VERSION}")
if(OCTET_WERROR)
  target_compile_options(octet_options INTERFACE -Werror)
endif()
if(OCTET_SANITIZE)
  target_compile_options(octet_options INTERFACE -fsanitize=${OCTET_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer)
  target_link_options(octet_options INTERFACE -fsanitize=${OCTET_SANITIZE})
endif()
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
