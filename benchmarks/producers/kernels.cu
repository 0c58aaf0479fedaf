// Operators of inference and training that are in neither the fixtures nor the corpus.

extern "C" __global__ void conv2d_3x3(float* y, const float* x, const float* w, int channels, int filters, int h, int wd) {
  int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y, f = blockIdx.z;
  if (px >= wd || py >= h) return;
  float sum = 0;
  for (int c = 0; c < channels; c++)
    for (int ky = -1; ky <= 1; ky++)
      for (int kx = -1; kx <= 1; kx++) {
        int iy = py + ky, ix = px + kx;
        if (iy >= 0 && iy < h && ix >= 0 && ix < wd)
          sum += x[(c * h + iy) * wd + ix] * w[((f * channels + c) * 3 + ky + 1) * 3 + kx + 1];
      }
  y[(f * h + py) * wd + px] = sum;
}

extern "C" __global__ void batchnorm(float* y, const float* x, const float* mean, const float* var, const float* gain,
                                     const float* bias, int channels, int plane, float eps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y, b = blockIdx.z;
  if (i >= plane) return;
  size_t at = ((size_t)b * channels + c) * plane + i;
  y[at] = (x[at] - mean[c]) / sqrtf(var[c] + eps) * gain[c] + bias[c];
}

extern "C" __global__ void attention_scores(float* s, const float* q, const float* k, int rows, int size, float scale) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y, head = blockIdx.z;
  if (j >= rows) return;
  float dot = -INFINITY;
  if (j <= i) {
    dot = 0;
    for (int d = 0; d < size; d++) dot += q[((size_t)head * rows + i) * size + d] * k[((size_t)head * rows + j) * size + d];
    dot *= scale;
  }
  s[((size_t)head * rows + i) * rows + j] = dot;
}

extern "C" __global__ void pool_2x2(float* y, const float* x, int h, int w) {
  int ox = blockIdx.x * blockDim.x + threadIdx.x, oy = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.z;
  if (ox >= w / 2 || oy >= h / 2) return;
  const float* row = x + ((size_t)c * h + 2 * oy) * w + 2 * ox;
  y[((size_t)c * (h / 2) + oy) * (w / 2) + ox] = fmaxf(fmaxf(row[0], row[1]), fmaxf(row[w], row[w + 1]));
}

extern "C" __global__ void upsample_nearest(float* y, const float* x, int h, int w, int factor, int channels) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, oh = h * factor, ow = w * factor;
  if (i >= channels * oh * ow) return;
  int ox = i % ow, oy = i / ow % oh, c = i / (ow * oh);
  y[i] = x[(c * h + oy / factor) * w + ox / factor];
}

extern "C" __global__ void adam(float* p, float* m, float* v, const float* g, float rate, float b1, float b2, float eps, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    m[i] = b1 * m[i] + (1 - b1) * g[i];
    v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
    p[i] -= rate * m[i] / (sqrtf(v[i]) + eps);
  }
}

extern "C" __global__ void cross_entropy(float* loss, const float* logits, const int* target, int classes) {
  __shared__ float part[32];
  const float* row = logits + (size_t)blockIdx.x * classes;
  float m = -INFINITY, s = 0;
  for (int i = threadIdx.x; i < classes; i += 32) m = fmaxf(m, row[i]);
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  for (int i = threadIdx.x; i < classes; i += 32) s += expf(row[i] - m);
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  part[threadIdx.x] = s;
  if (threadIdx.x == 0) loss[blockIdx.x] = logf(part[0]) + m - row[target[blockIdx.x]];
}

// Columns are summed by blocks of rows: 32 x 8 threads, one shared tile.
extern "C" __global__ void column_sums(float* y, const float* x, int rows, int columns) {
  __shared__ float part[8][33];
  int c = blockIdx.x * 32 + threadIdx.x;
  float s = 0;
  if (c < columns)
    for (int r = threadIdx.y; r < rows; r += 8) s += x[(size_t)r * columns + c];
  part[threadIdx.y][threadIdx.x] = s;
  __syncthreads();
  if (threadIdx.y == 0 && c < columns) {
    for (int k = 1; k < 8; k++) s += part[k][threadIdx.x];
    y[c] = s;
  }
}
