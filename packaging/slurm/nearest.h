/* Finds the key that a misspelt key probably means, as service-kit/nearest_name.h does for the other programs. */
#ifndef TRIBUTARY_PACKAGING_SLURM_NEAREST_H
#define TRIBUTARY_PACKAGING_SLURM_NEAREST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the nearest of the names, or NULL if none is near. */
const char* tributary_nearest_key(const char* key, const char* const* names, size_t count);

#ifdef __cplusplus
}
#endif

#endif
