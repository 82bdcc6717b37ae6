/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORDING_DRIVER_NEWER_H
#define RECORDING_DRIVER_NEWER_H

/* Functions that drivers after 13.0 have, for headers that do not declare them yet. */
#include <cuda.h>

#pragma GCC visibility push(default)

#if CUDA_VERSION < 12050
typedef CUresult(CUDAAPI *PFN_cuGreenCtxStreamCreate_v12050)(CUstream *, CUgreenCtx, unsigned int,
                                                             int);
CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags,
                                        int priority);
#endif

#if CUDA_VERSION < 13000
typedef CUresult(CUDAAPI *PFN_cuGreenCtxGetId_v12090)(CUgreenCtx, unsigned long long *);
CUresult CUDAAPI cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId);
#endif

#if CUDA_VERSION < 13010
typedef struct {
    unsigned int smCount, coscheduledSmCount, preferredCoscheduledSmCount, flags;
    unsigned int reserved[12];
} CU_DEV_SM_RESOURCE_GROUP_PARAMS;
typedef CUresult(CUDAAPI *PFN_cuDevSmResourceSplit_v13010)(CUdevResource *, unsigned int,
                                                           const CUdevResource *, CUdevResource *,
                                                           unsigned int,
                                                           CU_DEV_SM_RESOURCE_GROUP_PARAMS *);
typedef CUresult(CUDAAPI *PFN_cuStreamGetDevResource_v13010)(CUstream, CUdevResource *,
                                                             CUdevResourceType);
typedef PFN_cuStreamGetDevResource_v13010 PFN_cuStreamGetDevResource_v13010_ptsz;
CUresult CUDAAPI cuDevSmResourceSplit(CUdevResource *result, unsigned int nbGroups,
                                      const CUdevResource *input, CUdevResource *remainder,
                                      unsigned int flags,
                                      CU_DEV_SM_RESOURCE_GROUP_PARAMS *groupParams);
CUresult CUDAAPI cuStreamGetDevResource(CUstream hStream, CUdevResource *resource,
                                        CUdevResourceType type);
#endif
CUresult CUDAAPI cuStreamGetDevResource_ptsz(CUstream hStream, CUdevResource *resource,
                                             CUdevResourceType type);

#if CUDA_VERSION < 13020
typedef CUresult(CUDAAPI *PFN_cuGraphNodeGetParams_v13020)(CUgraphNode, CUgraphNodeParams *);
CUresult CUDAAPI cuGraphNodeGetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams);
#endif

#if CUDA_VERSION < 13030
typedef void *CUgraphRecaptureCallback;
typedef CUresult(CUDAAPI *PFN_cuStreamBeginRecaptureToGraph_v13030)(CUstream, CUstreamCaptureMode,
                                                                    CUgraph,
                                                                    CUgraphRecaptureCallback,
                                                                    void *);
typedef PFN_cuStreamBeginRecaptureToGraph_v13030 PFN_cuStreamBeginRecaptureToGraph_v13030_ptsz;
CUresult CUDAAPI cuStreamBeginRecaptureToGraph(CUstream hStream, CUstreamCaptureMode mode,
                                               CUgraph hGraph,
                                               CUgraphRecaptureCallback callbackFunc,
                                               void *userData);
#endif
CUresult CUDAAPI cuStreamBeginRecaptureToGraph_ptsz(CUstream hStream, CUstreamCaptureMode mode,
                                                    CUgraph hGraph,
                                                    CUgraphRecaptureCallback callbackFunc,
                                                    void *userData);

#if CUDA_VERSION < 13040
typedef CUresult(CUDAAPI *PFN_cuGraphAddNode_v13040)(CUgraphNode *, CUgraph, const CUgraphNode *,
                                                     const CUgraphEdgeData *, size_t,
                                                     CUgraphNodeParams *);
typedef CUresult(CUDAAPI *PFN_cuGraphNodeSetParams_v13040)(CUgraphNode, CUgraphNodeParams *);
CUresult CUDAAPI cuGraphAddNode_v3(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies,
                                   const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                   CUgraphNodeParams *nodeParams);
CUresult CUDAAPI cuGraphNodeSetParams_v2(CUgraphNode hNode, CUgraphNodeParams *nodeParams);
#endif
#pragma GCC visibility pop

#endif
