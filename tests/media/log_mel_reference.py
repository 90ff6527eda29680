#!/usr/bin/env python3
"""Values of log-mel frames by torch and torchaudio (Debian: python3-torchaudio), for log_mel_test.cc.

    log_mel_reference.py            some values of the tone of signals.h, as the test has them
    log_mel_reference.py A.wav F    the largest difference from F, floats of [frames, 80], of a WAV at 16 kHz
"""

import sys
import wave

import numpy
import torch
import torchaudio


def log_mel(samples, bins):
    spectrum = torch.stft(samples, 400, 160, window=torch.hann_window(400, dtype=samples.dtype),
                          center=True, pad_mode="reflect", return_complex=True)
    power = spectrum[:, : len(samples) // 160].abs() ** 2
    filters = torchaudio.functional.melscale_fbanks(201, 0.0, 8000.0, bins, 16000, norm="slaney",
                                                    mel_scale="slaney").to(samples.dtype)
    mel = torch.clamp(filters.T @ power, min=1e-10).log10()
    return ((torch.maximum(mel, mel.max() - 8.0) + 4.0) / 4.0).T


def of_tone():
    t = torch.arange(16000, dtype=torch.float64) / 16000
    tone = (0.5 * torch.sin(2 * torch.pi * (100 * t + 6000 * t * t))).float().double()
    mel = log_mel(tone, 80)
    for frame in (0, 1, 10, 25, 50, 75, 90):
        loudest = int(mel[frame].argmax())
        for bin in (max(0, loudest - 1), loudest, loudest + 3):
            print("{%d, %d, %.6f}," % (frame, bin, mel[frame, bin]))


def compare(path, values):
    with wave.open(path) as file:
        assert file.getframerate() == 16000 and file.getsampwidth() == 2 and file.getnchannels() == 1
        samples = numpy.frombuffer(file.readframes(file.getnframes()), dtype="<i2") / 32768
    mel = log_mel(torch.from_numpy(samples), 80)
    ours = torch.from_numpy(numpy.fromfile(values, dtype="<f4").reshape(-1, 80)).double()
    assert ours.shape == mel.shape, (ours.shape, mel.shape)
    print("%.3g" % (ours - mel).abs().max())


if len(sys.argv) == 3:
    compare(sys.argv[1], sys.argv[2])
else:
    of_tone()
