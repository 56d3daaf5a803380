#include "simde_shim.h"

#define OCTET_SHIM_CASES emulation
#include "tests/emulated/shim_cases.h"
