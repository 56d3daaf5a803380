// The instructions themselves. The one file of this program that is not emulated; it shares no
// function with the others but cases().
#include <immintrin.h>

#define OCTET_SHIM_CASES hardware
#include "tests/emulated/shim_cases.h"
