"""The public names that programs may count on, grouped by subject. A missing one breaks somebody's program."""

from __future__ import annotations


def _words(text: str) -> list[str]:
    return text.split()


# Values and types: what is listed here is looked at, not called.
VALUES = _words("""
    float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 bool_ cpu has_vulkan __version__
""")
TYPES = _words("""
    Tensor dtype device Reduction LogLevel
    Error ShapeError DTypeError IndexError_ DeviceError NotImplementedError_ OutOfMemoryError
""")

# Functions and classes of vkml, by subject: each has a docstring with an example that runs.
FUNCTIONS = {
    "types": "finfo iinfo",
    "creation": """
        tensor zeros ones full empty zeros_like ones_like full_like empty_like eye linspace arange rand randn randint
        rand_like randn_like randperm multinomial manual_seed
        from_numpy asarray from_dlpack as_tensor set_default_device set_default_dtype
    """,
    "the ten operators": """
        matmul softmax log_softmax layer_norm rms_norm batch_norm dropout conv2d max_pool2d avg_pool2d
    """,
    "windows": "im2col col2im",
    "reductions": "sum mean prod amax amin max min argmax argmin var std logsumexp cumsum all any norm",
    "elementwise": """
        add sub mul div pow floor_divide remainder maximum minimum equal not_equal less less_equal greater greater_equal
        eq ne lt le gt ge isclose allclose
        logical_and logical_or logical_xor logical_not scaled_add neg abs sign square reciprocal sqrt rsqrt exp log
        log1p expm1 erf erfc sin cos tanh sigmoid relu gelu silu softplus clamp clamp_min clamp_max clip round floor
        ceil trunc isnan isinf isfinite tan exp2 log2 leaky_relu elu mish logsigmoid hardtanh
    """,
    "selection, shape, indexing": """
        where masked_fill cat stack split chunk index_select gather scatter_add index_add embedding triu tril sort topk
        flip roll repeat tile repeat_interleave nonzero unique reshape permute transpose squeeze unsqueeze flatten
        expand broadcast_to contiguous movedim unflatten clone detach t vstack hstack meshgrid
    """,
    "products and losses": """
        linear addmm bmm dot outer mse_loss cross_entropy nll_loss l1_loss smooth_l1_loss binary_cross_entropy
        binary_cross_entropy_with_logits kl_div huber_loss
    """,
    "attention": """
        chunk_kda chunk_kda_backward kda_decode naive_recurrent_kda scaled_dot_product_attention
    """,
    "autograd": "backward grad no_grad enable_grad set_grad_enabled is_grad_enabled",
    "execution": """
        realize assign set_eager is_eager eager_mode synchronize capture set_float32_matmul_precision
        get_float32_matmul_precision
    """,
    "files": "save load save_module load_module",
    "devices, memory, profiling": """
        devices device_info memory_stats empty_cache reset_peak_memory decisions record_decisions
        stop_recording_decisions decisions_published configuration set_log_level
    """,
}

TENSOR_PROPERTIES = _words("""
    shape ndim size dtype device strides is_contiguous T mT itemsize nbytes requires_grad grad is_leaf grad_fn
""")
TENSOR_METHODS = _words("""
    numel dim stride item tolist numpy defined data_ptr element_size is_floating_point to astype cpu vulkan float half
    bfloat16 double int long bool reshape view permute transpose squeeze unsqueeze flatten expand broadcast_to
    contiguous movedim unflatten clone detach assign_ backward requires_grad_ zero_grad retain_grad realize
    add sub mul div pow floor_divide remainder maximum minimum equal not_equal less less_equal greater greater_equal
    neg abs sign square reciprocal sqrt rsqrt exp log log1p expm1 erf erfc sin cos tanh sigmoid relu gelu silu softplus
    eq ne lt le gt ge isclose allclose t clip clip_ multinomial
    clamp clamp_min clamp_max round floor ceil trunc sum mean prod amax amin max min argmax argmin var std logsumexp
    cumsum all any norm softmax log_softmax matmul where masked_fill index_select gather scatter_add sort topk triu tril
    split chunk
""")
TENSOR_PROTOCOLS = _words("""
    __array__ __dlpack__ __dlpack_device__ __copy__ __deepcopy__ __reduce__ __len__ __iter__ __bool__ __float__ __int__
    __repr__ __hash__ __getitem__ __setitem__ __matmul__ __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__
    __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__ __rmod__ __pow__ __rpow__ __neg__ __abs__ __eq__ __ne__
    __lt__ __le__ __gt__ __ge__ __and__ __or__ __xor__ __invert__
""")

# Sub-modules: classes and functions, each with a docstring with an example that runs.
MODULES = {
    "nn": """
        Module Parameter Linear Conv1d Conv2d Conv3d ConvTranspose2d MaxPool2d AvgPool2d AdaptiveAvgPool2d
        AdaptiveMaxPool2d BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm2d LayerNorm GroupNorm RMSNorm Embedding
        Flatten Identity Dropout ReLU Tanh Sigmoid GELU SiLU Softmax LogSoftmax LeakyReLU Sequential ModuleList
        ModuleDict MultiheadAttention TransformerEncoderLayer PositionalEncoding KimiDeltaAttention LSTM GRU
        MSELoss L1Loss SmoothL1Loss NLLLoss BCELoss CrossEntropyLoss BCEWithLogitsLoss KLDivLoss HuberLoss
        mse_loss cross_entropy binary_cross_entropy_with_logits kl_div huber_loss scaled_dot_product_attention
    """,
    "nn.functional": """
        relu gelu silu sigmoid tanh softmax log_softmax linear embedding dropout layer_norm rms_norm batch_norm conv2d
        max_pool2d avg_pool2d mse_loss cross_entropy binary_cross_entropy_with_logits kl_div huber_loss
        scaled_dot_product_attention
    """,
    "nn.init": """
        kaiming_uniform_ kaiming_normal_ xavier_uniform_ xavier_normal_ normal_ uniform_ zeros_ ones_ constant_
    """,
    "nn.utils": "clip_grad_norm_ clip_grad_value_",
    "autograd": "Function gradcheck",
    "optim": "SGD RMSprop RMSProp Adam AdamW Lion EMA clip_grad_norm_ clip_grad_value_",
    "optim.lr_scheduler": """
        StepLR MultiStepLR CosineAnnealingLR LinearWarmup LambdaLR SequentialLR OneCycleLR ReduceLROnPlateau
    """,
    "data": """
        Dataset ArrayDataset TensorDataset split random_split default_collate DataLoader Compose RandomHorizontalFlip
        RandomCrop
    """,
    "profiler": "profile",
}

MODULE_METHODS = _words("""
    parameters named_parameters buffers named_buffers modules named_modules children named_children state_dict
    load_state_dict register_buffer register_parameter zero_grad to train eval apply requires_grad_ forward
    register_forward_hook register_forward_pre_hook
""")
OPTIMIZER_NAMES = _words("add_param_group step zero_grad state_dict load_state_dict lr")
