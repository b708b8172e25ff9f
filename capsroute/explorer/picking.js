// Pictures go to the server inside the event 'upload': nothing is stored there.
const MOST_BYTES = 8 * 1024 * 1024;
const canvas = element.querySelector('canvas');
const pen = canvas.getContext('2d', {willReadFrequently: true});
const file = element.querySelector('input[type=file]');
const said = element.querySelector('.cr-said');
const SIDE = canvas.width, STEP = 8;
let at = [SIDE / 2, SIDE / 2], down = false, drawn = null;

function clear() {
  pen.globalCompositeOperation = 'source-over';
  pen.fillStyle = 'black';
  pen.fillRect(0, 0, SIDE, SIDE);
  drawn = null;
}

function stroke(from, to) {
  pen.strokeStyle = 'white';
  pen.lineWidth = 22;
  pen.lineCap = 'round';
  pen.beginPath();
  pen.moveTo(...from);
  pen.lineTo(...to);
  pen.stroke();
}

// The pen of the keyboard is shown, but is no part of the drawing.
function withPen(show) {
  if (drawn) pen.putImageData(drawn, 0, 0);
  drawn = show ? pen.getImageData(0, 0, SIDE, SIDE) : null;
  if (!show) return;
  pen.strokeStyle = down ? '#D55E00' : '#56B4E9';
  pen.lineWidth = 3;
  pen.beginPath();
  pen.arc(at[0], at[1], 13, 0, 2 * Math.PI);
  pen.stroke();
}

function place(event) {
  const box = canvas.getBoundingClientRect();
  return [(event.clientX - box.left) * SIDE / box.width, (event.clientY - box.top) * SIDE / box.height];
}

canvas.addEventListener('pointerdown', event => {
  withPen(false);
  canvas.setPointerCapture(event.pointerId);
  at = place(event);
  down = true;
  stroke(at, at);
});
canvas.addEventListener('pointermove', event => {
  if (!canvas.hasPointerCapture(event.pointerId)) return;
  const to = place(event);
  stroke(at, to);
  at = to;
});
canvas.addEventListener('pointerup', () => { down = false; });
canvas.addEventListener('pointercancel', () => { down = false; });
canvas.addEventListener('blur', () => { down = false; withPen(false); });
canvas.addEventListener('keydown', event => {
  const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
  const move = moves[event.key];
  if (!move && event.key !== ' ') return;
  event.preventDefault();
  withPen(false);
  const from = at;
  if (move) at = at.map((value, axis) => Math.min(SIDE, Math.max(0, value + STEP * move[axis])));
  else down = !down;
  if (down) stroke(from, at);
  withPen(true);
});

element.querySelector('[data-do=clear]').addEventListener('click', clear);
element.querySelector('[data-do=use]').addEventListener('click', () => {
  withPen(false);
  trigger('upload', {picture: canvas.toDataURL('image/png'), told: 'your drawing'});
});
file.addEventListener('change', () => {
  const chosen = file.files[0];
  said.textContent = '';
  if (!chosen) return;
  if (chosen.size > MOST_BYTES) {
    said.textContent = 'The picture is larger than 8 MB; make it smaller.';
  } else {
    const reader = new FileReader();
    reader.onload = () => trigger('upload', {picture: reader.result, told: 'your picture'});
    reader.onerror = () => { said.textContent = 'The file cannot be read.'; };
    reader.readAsDataURL(chosen);
  }
  file.value = '';
});
clear();
