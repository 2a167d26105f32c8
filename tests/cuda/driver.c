/* driver.c - a stand-in for libcuda.so.1, with which cuDNN plans for a GPU that is only described.
 *
 * cuDNN's runtime-compiled engines ask the driver what the GPU is, compile with NVRTC and load what
 * they compiled; none of that needs a GPU. This library answers the questions as an NVIDIA H200
 * would (tests/cuda/h200.json says the same to cuDNN) and says "done" to everything else by name:
 * driver_names.sh lists all names of cuda.h, and those that are defined here win over them. Nothing
 * is executed: a launch is refused. The CUDA runtime does not come up on it either, because the
 * tables that it asks the driver for by number are not here; so no device opens but a described
 * one.
 *
 * Tests set LD_LIBRARY_PATH to it. Nothing that is installed or shipped knows of it. */
#define __CUDA_API_VERSION_INTERNAL /* Names of functions as the library exports them. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Signatures are the driver's, names of parameters our own. */
/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name,readability-non-const-parameter,readability-function-size) */

enum { DRIVER_VERSION = 13000 };

static const size_t memory_bytes = 150754820096;

/* What handles point to: nobody looks inside. */
static char something[64];

static const struct {
    CUdevice_attribute name;
    int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,             9         },
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,             0         },
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,                 132       },
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE,                            32        },
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,                1024      },
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,       2048      },
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,        32        },
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,                      1024      },
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,                      1024      },
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,                      64        },
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,                       2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,                       65535     },
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,                       65535     },
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,          49152     },
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,    232448    },
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472    },
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,     1024      },
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK,              65536     },
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,     65536     },
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,                        62914560  },
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE,                           1980000   },
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,                    3201000   },
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,              6144      },
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH,                   1         },
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING,                   1         },
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS,                   1         },
};

CUresult cuDriverGetVersion(int *version)
{
    *version = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int number)
{
    *device = number;
    return number == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    (void)device;
    (void)snprintf(name, (size_t)size, "NVIDIA H200");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute name, CUdevice device)
{
    (void)device;
    *value = 0;
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        *value = attributes[i].name == name ? attributes[i].value : *value;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    (void)device;
    *major = 9;
    *minor = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = memory_bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
    *left = memory_bytes;
    *total = memory_bytes;
    return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------ handles */

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = (CUcontext)(void *)something;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    return cuCtxGetCurrent(context);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    (void)image;
    *module = (CUmodule)(void *)something;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values)
{
    (void)count;
    (void)options;
    (void)values;
    return cuModuleLoadData(module, image);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    (void)name;
    *function = (CUfunction)(void *)something;
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
                           void **values, unsigned int count, CUlibraryOption *more, void **others,
                           unsigned int more_count)
{
    (void)code;
    (void)options;
    (void)values;
    (void)count;
    (void)more;
    (void)others;
    (void)more_count;
    *library = (CUlibrary)(void *)something;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    (void)library;
    (void)name;
    *kernel = (CUkernel)(void *)something;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    (void)kernel;
    *function = (CUfunction)(void *)something;
    return CUDA_SUCCESS;
}

/* ----------------------------------------------------------------- refusals */

CUresult cuGetErrorName(CUresult error, const char **text)
{
    (void)error;
    *text = "an error of the stand-in for the driver";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) { return cuGetErrorName(error, text); }

/* The CUDA runtime's own tables. */
CUresult cuGetExportTable(const void **table, const CUuuid *number)
{
    (void)number;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

/* -------------------------------------------------------------------- names */

static void *find_name(const char *name)
{
    Dl_info self;
    char longer[128];
    void *found = NULL;
    if (dladdr(something, &self) == 0) {
        return NULL;
    }
    void *library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    for (int version = 4; version > 1 && found == NULL; version--) {
        (void)snprintf(longer, sizeof(longer), "%s_v%d", name, version);
        found = dlsym(library, longer);
    }
    found = found == NULL ? dlsym(library, name) : found;
    (void)dlclose(library);
    return found;
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *result)
{
    (void)version;
    (void)flags;
    *function = find_name(name);
    if (result != NULL) {
        *result =
            *function != NULL ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return *function != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name,readability-non-const-parameter,readability-function-size) */
