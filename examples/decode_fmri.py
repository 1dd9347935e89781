"""Which voxels tell two conditions apart? SparseLogisticRegression inside nilearn's Decoder, on simulated images.

    pip install nilearn && python examples/decode_fmri.py

Eight voxels of a 10×10×10 brain carry the condition. The Decoder masks, standardises, cross-validates over runs and
maps the weights back into an image; the estimator says which voxels matter.
"""

import warnings

import nibabel
import numpy as np
from nilearn.decoding import Decoder
from sklearn.model_selection import LeaveOneGroupOut

from sparsebayes import SparseLogisticRegression


def simulated_images(seed=0, shape=(10, 10, 10), n_images=160, n_signal=8):
    """One image per trial, a mask of the whole brain, conditions, runs, and the voxels that matter."""
    rng = np.random.default_rng(seed)
    signal = rng.choice(np.prod(shape), n_signal, replace=False)
    condition = rng.integers(0, 2, n_images)
    voxels = rng.standard_normal((n_images, np.prod(shape)))
    voxels[:, signal] += 0.6 * (2 * condition[:, None] - 1)
    images = nibabel.Nifti1Image(voxels.T.reshape(*shape, n_images), np.eye(4))
    mask = nibabel.Nifti1Image(np.ones(shape, dtype=np.int8), np.eye(4))
    runs = np.arange(n_images) % 4
    return images, mask, np.where(condition, "face", "house"), runs, np.sort(signal)


def main():
    images, mask, condition, runs, signal = simulated_images()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nilearn warns of every estimator that is not its own
        decoder = Decoder(
            estimator=SparseLogisticRegression(),
            mask=mask,
            cv=LeaveOneGroupOut(),
            scoring="accuracy",
            screening_percentile=100,
        ).fit(images, condition, groups=runs)
    weights = decoder.coef_img_["face"].get_fdata().ravel()
    found = np.flatnonzero(weights)
    print(f"accuracy on the runs left out: {np.mean(decoder.cv_scores_['face']):.2f}")
    print(f"voxels that carry the condition: {signal}")
    print(f"voxels kept in any fold:         {found}")


if __name__ == "__main__":
    main()
